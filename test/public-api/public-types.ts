/**
 * Prints the exports of `src/index.ts` with all their members. Exported types are named, all other types are expanded: renaming or
 * composing internal types does not change the text. Members and types with the tag `@internal` are left out.
 */
import { pathToFileURL } from "node:url"
import type { ExportDeclaration, ExportSpecifier } from "typescript/unstable/ast"
import {
  API,
  type Checker,
  NodeBuilderFlags,
  type Project,
  type Signature,
  SignatureKind,
  SymbolFlags,
  type Type,
  TypeFlags,
  type TypeParameter,
  type TypeReference,
  type Symbol as TypeSymbol,
} from "typescript/unstable/sync"

/** TypeScript's CheckFlags.Readonly: on the properties of mapped types. */
const MAPPED_READONLY = 8
const FLAGS = NodeBuilderFlags.NoTruncation | NodeBuilderFlags.InTypeAlias

/** `root` has a tsconfig.json. */
export function publicTypes(root: string): string {
  const api = new API({ cwd: root })
  try {
    const snapshot = api.updateSnapshot({ openProjects: [`${root}/tsconfig.json`] })
    const project = snapshot.getProjects()[0]!
    return new Printer(project).print(`${root}/src/index.ts`)
  } finally {
    api.close()
  }
}

class Printer {
  readonly #project: Project
  readonly #checker: Checker
  /** Names of the exports by the id of their symbol. */
  readonly #exported = new Map<number, string>()
  /** Types that are being expanded: one that refers to itself ends in its name. */
  readonly #open: Type[] = []

  constructor(project: Project) {
    this.#project = project
    this.#checker = project.checker
  }

  print(indexFile: string): string {
    const source = this.#project.program.getSourceFile(indexFile)!
    const module = this.#checker.getSymbolAtLocation(source)!
    const exports = this.#checker.getExportsOfModule(module).toSorted((a, b) => (a.name < b.name ? -1 : 1))
    const symbols = exports.map((one) => this.#checker.getAliasedSymbol(one))
    for (const [i, { id }] of symbols.entries()) this.#exported.set(id, exports[i]!.name)
    return symbols.map((symbol, i) => this.#declaration(symbol, this.#isTypeOnly(exports[i]!))).join("\n")
  }

  /** `export type { … }` or `export { type … }`. */
  #isTypeOnly(exported: TypeSymbol): boolean {
    const specifier = exported.declarations[0]!.resolve(this.#project) as ExportSpecifier
    return specifier.isTypeOnly || (specifier.parent.parent as ExportDeclaration).isTypeOnly
  }

  #declaration(symbol: TypeSymbol, isTypeOnly: boolean): string {
    const lines: string[] = []
    if (symbol.flags & SymbolFlags.Type) {
      const type = this.#checker.getDeclaredTypeOfSymbol(symbol)
      const parameters =
        type.getAliasSymbol() === undefined ? typeParametersOf(type) : type.getAliasTypeArguments()
      lines.push(`type ${symbol.name}${this.#list(parameters)} = ${this.#expanded(type)}\n`)
    }
    if (symbol.flags & SymbolFlags.Value && !isTypeOnly)
      lines.push(`value ${symbol.name}: ${this.#expanded(this.#checker.getTypeOfSymbol(symbol)!)}\n`)
    return lines.join("\n")
  }

  #type(type: Type): string {
    // The compiler keeps or drops the name of a union, depending on how it is composed.
    const alias = type.isUnionType() ? undefined : type.getAliasSymbol()
    const name = alias === undefined ? undefined : this.#exported.get(alias.id)
    if (name !== undefined) return name + this.#list(type.getAliasTypeArguments())
    const symbol = type.getSymbol()
    if (this.#isInternal(symbol)) return "(internal)"
    const own = symbol === undefined ? undefined : this.#exported.get(symbol.id)
    if (own !== undefined && type.isClassOrInterface()) return own + this.#list(typeParametersOf(type))
    if (own !== undefined && type.isTypeReference()) return own + this.#argumentsOf(type)
    return this.#expanded(type)
  }

  #expanded(type: Type): string {
    if (type.isUnionType() && !(type.flags & TypeFlags.Boolean)) return this.#union(type.getTypes())
    if (type.isIntersectionType())
      return type
        .getTypes()
        .map((part) => this.#type(part))
        .join(" & ")
    if (!type.isObjectType()) return this.#text(type)
    if (type.isTypeReference()) {
      const target = type.getTarget()
      if (target.isTupleType())
        return `${target.readonly ? "readonly " : ""}[${this.#texts(this.#checker.getTypeArguments(type))}]`
      if (this.#isForeign(type)) return this.#nameOf(type) + this.#argumentsOf(type)
    }
    if (this.#isForeign(type)) return this.#text(type)
    if (this.#open.some(({ id }) => id === type.id)) return this.#text(type)
    this.#open.push(type)
    const members = this.#members(type)
    this.#open.pop()
    return members
  }

  /** `false | true` is `boolean`; the order of the others depends on the order in which the compiler met them. */
  #union(types: readonly Type[]): string {
    const texts = types.map((part) => this.#type(part))
    const isBoolean = texts.includes("true") && texts.includes("false")
    const kept = isBoolean
      ? [...texts.filter((text) => text !== "true" && text !== "false"), "boolean"]
      : texts
    return [...new Set(kept)].sort().join(" | ")
  }

  #members(type: Type): string {
    const calls = this.#checker.getSignaturesOfType(type, SignatureKind.Call)
    const constructors = this.#checker.getSignaturesOfType(type, SignatureKind.Construct)
    const properties = this.#checker.getPropertiesOfType(type).filter((property) => this.#isVisible(property))
    if (properties.length === 0 && constructors.length === 0 && calls.length === 1)
      return this.#signature(calls[0]!)
    const lines = [
      ...calls.map((call) => this.#signature(call)),
      ...constructors.map((one) => `new ${this.#signature(one)}`),
      ...this.#checker
        .getIndexInfosOfType(type)
        .map(
          ({ keyType, valueType, isReadonly }) =>
            `${isReadonly ? "readonly " : ""}[${this.#type(keyType)}]: ${this.#type(valueType)}`,
        ),
      ...properties.map((property) => this.#property(property)).sort(),
    ]
    return lines.length === 0 ? "{}" : `{\n${lines.join("\n").replaceAll(/^/gm, "  ")}\n}`
  }

  #property(property: TypeSymbol): string {
    const isOptional = (property.flags & SymbolFlags.Optional) !== 0
    const type = this.#checker.getTypeOfSymbol(property)!
    const name = property.name.replace(/^__@(\w+)@\d+$/, "[Symbol.$1]")
    const prefix = this.#isReadonly(property) ? "readonly " : ""
    return `${prefix}${name}${isOptional ? "?" : ""}: ${isOptional ? this.#withoutUndefined(type) : this.#type(type)}`
  }

  #withoutUndefined(type: Type): string {
    if (!type.isUnionType()) return this.#type(type)
    return this.#union(type.getTypes().filter(({ flags }) => !(flags & TypeFlags.Undefined)))
  }

  #isReadonly(property: TypeSymbol): boolean {
    if (property.checkFlags & MAPPED_READONLY) return true
    return this.#modifiers(property).includes("readonly")
  }

  #isVisible(property: TypeSymbol): boolean {
    if (/#|^prototype$/.test(property.name) || this.#modifiers(property).includes("private")) return false
    return !this.#isInternal(property)
  }

  #isInternal(symbol: TypeSymbol | undefined): boolean {
    return symbol?.getJsDocTags(this.#checker).some(({ name }) => name === "internal") ?? false
  }

  #modifiers(property: TypeSymbol): readonly string[] {
    const node = property.declarations[0]?.resolve(this.#project) as
      | { readonly modifiers?: readonly { getText(): string }[] }
      | undefined
    return node?.modifiers?.map((modifier) => modifier.getText()) ?? []
  }

  #signature(signature: Signature): string {
    const parameters = signature.getParameters().map((parameter, i, all) => {
      const isRest = signature.hasRestParameter && i === all.length - 1
      const isOptional = this.#isOptionalParameter(parameter)
      const type = this.#type(this.#checker.getTypeOfSymbol(parameter)!)
      return `${isRest ? "..." : ""}${parameter.name}${isOptional ? "?" : ""}: ${type}`
    })
    const predicate = this.#checker.getTypePredicateOfSignature(signature)
    const result = this.#type(this.#checker.getReturnTypeOfSignature(signature)!)
    const generic = this.#list(signature.getTypeParameters(), (parameter) => this.#typeParameter(parameter))
    return `${generic}(${parameters.join(", ")}) => ${predicate === undefined ? result : this.#predicate(predicate, result)}`
  }

  #typeParameter(parameter: Type): string {
    const constraint = this.#checker.getConstraintOfTypeParameter(parameter as TypeParameter)
    return this.#text(parameter) + (constraint === undefined ? "" : ` extends ${this.#type(constraint)}`)
  }

  #predicate(
    { parameterName, type }: { parameterName: string | undefined; type: Type | undefined },
    result: string,
  ) {
    return type === undefined ? result : `${parameterName ?? "this"} is ${this.#type(type)}`
  }

  #isOptionalParameter(parameter: TypeSymbol): boolean {
    const node = parameter.valueDeclaration?.resolve(this.#project) as
      | { readonly questionToken?: unknown; readonly initializer?: unknown }
      | undefined
    return node?.questionToken !== undefined || node?.initializer !== undefined
  }

  /** Of TypeScript's libraries, of Node or of a package. */
  #isForeign(type: Type): boolean {
    const symbol = type.getSymbol()
    // An anonymous type of a library is one that a utility such as `Omit` made.
    return symbol?.name !== "__type" && /\/node_modules\/|^bundled:/.test(symbol?.declarations[0]?.path ?? "")
  }

  #nameOf(type: Type): string {
    return type.getSymbol()!.name
  }

  #argumentsOf(type: TypeReference): string {
    const args = this.#checker.getTypeArguments(type)
    const most = typeParametersOf(type.getTarget()).length
    return this.#list(most === 0 ? args : args.slice(0, most))
  }

  #list(types: readonly Type[], print = (type: Type) => this.#type(type)): string {
    return types.length === 0 ? "" : `<${types.map(print).join(", ")}>`
  }

  #texts(types: readonly Type[]): string {
    return types.map((type) => this.#type(type)).join(", ")
  }

  #text(type: Type): string {
    return this.#checker.typeToString(type, undefined, FLAGS)
  }
}

function typeParametersOf(type: Type): readonly Type[] {
  return type.isClassOrInterface() ? type.getLocalTypeParameters() : []
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href)
  process.stdout.write(publicTypes(process.argv[2] ?? process.cwd()))
