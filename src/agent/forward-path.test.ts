import { expect, test } from "vitest"
import { targetPath } from "./forward-path.ts"

test.each([
  ["/", "", "", "/"],
  ["/", "", "?a=1", "/?a=1"],
  ["/", "/x", "?a=%2F&b", "/x?a=%2F&b"],
  ["/", "/x", "a=1", "/x?a=1"],
  ["/hooks", "", "?a", "/hooks?a"],
  ["/hooks/", "", "", "/hooks/"],
  ["/hooks", "/x/y/", "", "/hooks/x/y/"],
  ["/hooks/", "/x", "", "/hooks/x"],
  ["/hooks", "/a%20b//c;d=1/%E2%82%AC", "", "/hooks/a%20b//c;d=1/%E2%82%AC"],
  ["/hooks", "/a/../b", "", "/hooks/a/../b"],
  ["/hooks", "/%252e%252e/x", "", "/hooks/%252e%252e/x"],
  // Bytes of a request line that are not ASCII stay the same bytes.
  ["/", "/\xc3\xbc", "", "/\xc3\xbc"],
])("below %s, %s with %s is %s", (base, path, query, target) => {
  expect(targetPath(base, path, query)).toBe(target)
})

test.each([
  ["//evil.example/x", "/evil.example/x"],
  ["///evil.example/x", "/evil.example/x"],
  ["/\\evil.example/x", "/evil.example/x"],
  ["\\\\evil.example", "/evil.example"],
  ["http://evil.example/x", "/http://evil.example/x"],
  ["evil.example:80", "/evil.example:80"],
  ["*", "/*"],
  ["@evil.example/", "/@evil.example/"],
  ["/x\r\nHost: evil", "/x%0D%0AHost:%20evil"],
  ["/x#y", "/x%23y"],
  ["/\u20ac", "/%E2%82%AC"],
])("%j stays on the host and below the base", (path, below) => {
  expect(targetPath("/", path, "")).toBe(below)
  expect(targetPath("/base", path, "")).toBe(`/base${below}`)
  const parsed = new URL(targetPath("/base", path, "")!, "http://localhost:3000")
  expect(parsed.origin).toBe("http://localhost:3000")
  expect(parsed.pathname.startsWith("/base/")).toBe(true)
})

test.each([
  "/..",
  "/../",
  "..",
  "/../x",
  "/a/../../x",
  "/./../x",
  "//../x",
  "/a//../../x",
  "/%2e%2e/x",
  "/%2E./x",
  "/.%2e",
  "/..%2fx",
  "/..%5Cx",
  "/..\\x",
  "/a\\..\\..\\x",
  "/%2e%2e%2f%2e%2e%2fetc/passwd",
  "/..;/x",
  "/..;jsessionid=1/x",
])("%s would leave the base, and is not forwarded", (path) => {
  expect(targetPath("/base", path, "")).toBeNull()
})
