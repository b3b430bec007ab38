/** Completion scripts for shells. */
import type { FlagWord, Place, Word } from "./completion.ts"

export const SHELLS = ["bash", "zsh", "fish"] as const
export type Shell = (typeof SHELLS)[number]

export function scriptFor(shell: Shell, places: readonly Place[]): string {
  return { bash, zsh, fish }[shell](places)
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

const isGroup = ({ at, flags, words }: Place) => at !== "" && flags.length === 0 && words.length > 0
const groups = (places: readonly Place[]) =>
  places
    .filter(isGroup)
    .map(({ at }) => at)
    .join("|")

/** The flags whose values are wanted, with their position. */
function valued(places: readonly Place[], wanted: (value: NonNullable<FlagWord["value"]>) => boolean) {
  return places.flatMap(({ at, flags }) =>
    flags.filter(({ value }) => value !== null && wanted(value)).map((flag) => ({ at, ...flag })),
  )
}

const patterns = (flags: readonly { readonly at: string; readonly name: string }[]) =>
  flags.map(({ at, name }) => `"${at} ${name}"`).join("|")

function bash(places: readonly Place[]): string {
  const listed = valued(places, Array.isArray)
  const cases = places.map(({ at, words, flags }) => {
    const names = [...words, ...flags].map(({ name }) => name)
    return `    ${at === "" ? '""' : `"${at}"`}) words=${quoted(names.join(" "))} ;;`
  })
  return `# posthorn completion bash: put it into ~/.bashrc as  eval "$(posthorn completion bash)"
_posthorn() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} at= words=
  COMPREPLY=()
  ((COMP_CWORD > 1)) && at=\${COMP_WORDS[1]}
  case $at in
    ${groups(places)}) ((COMP_CWORD > 2)) && at="$at \${COMP_WORDS[2]}" ;;
  esac
  case "$at $prev" in
    ${patterns(valued(places, (value) => value === "file"))}) COMPREPLY=($(compgen -f -- "$cur")); return ;;
    ${patterns(valued(places, (value) => value === "any"))}) return ;;
${listed.map(({ at, name, value }) => `    "${at} ${name}") COMPREPLY=($(compgen -W ${quoted((value as string[]).join(" "))} -- "$cur")); return ;;`).join("\n")}
  esac
  case $at in
${cases.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F _posthorn posthorn
`
}

function zsh(places: readonly Place[]): string {
  const described = ({ name, about }: Word) => quoted(`${name}:${about.replaceAll(":", "\\:")}`)
  const listed = valued(places, Array.isArray)
  return `#compdef posthorn
# posthorn completion zsh: put it into ~/.zshrc, behind compinit, as  eval "$(posthorn completion zsh)"
_posthorn() {
  local at="" prev="\${words[CURRENT-1]}"
  local -a found
  ((CURRENT > 2)) && at="\${words[2]}"
  case "$at" in
    ${groups(places)}) ((CURRENT > 3)) && at="$at \${words[3]}" ;;
  esac
  case "$at $prev" in
    ${patterns(valued(places, (value) => value === "file"))}) _files; return ;;
    ${patterns(valued(places, (value) => value === "any"))}) return ;;
${listed.map(({ at, name, value }) => `    "${at} ${name}") compadd -- ${(value as string[]).join(" ")}; return ;;`).join("\n")}
  esac
  case "$at" in
${places.map(({ at, words, flags }) => `    "${at}") found=(${[...words, ...flags].map(described).join(" ")}) ;;`).join("\n")}
  esac
  _describe posthorn found
}
compdef _posthorn posthorn
`
}

function fish(places: readonly Place[]): string {
  const lines = places.flatMap((place) => {
    const { at, words, flags } = place
    const depth = at === "" ? 0 : at.split(" ").length
    // Words directly follow their position, flags may come later.
    const here =
      depth === 0 ? '-n "test (count (commandline -opc)) -eq 1"' : `-n "__posthorn_is ${depth} ${at}"`
    const behind = `-n "__posthorn_has ${depth} ${at}"`
    return [
      ...words.map(({ name, about }) => `complete -c posthorn ${here} -a ${name} -d ${fishQuoted(about)}`),
      ...flags.map(({ name, about, value }) => {
        const kind = value === null ? "" : value === "file" ? " -r -F" : " -x"
        const choices = Array.isArray(value) ? ` -a ${fishQuoted(value.join(" "))}` : ""
        return `complete -c posthorn ${behind} -l ${name.slice(2)}${kind}${choices} -d ${fishQuoted(about)}`
      }),
    ]
  })
  return `# posthorn completion fish: posthorn completion fish > ~/.config/fish/completions/posthorn.fish
function __posthorn_has
    set -l typed (commandline -opc)
    set -l last (math $argv[1] + 1)
    test (count $typed) -ge $last; and test "$typed[2..$last]" = "$argv[2..-1]"
end
function __posthorn_is
    test (count (commandline -opc)) -eq (math $argv[1] + 1); and __posthorn_has $argv
end
complete -c posthorn -f
${lines.join("\n")}
`
}

const fishQuoted = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`
