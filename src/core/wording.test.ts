import { expect, test } from "vitest"
import { bytesText, durationText, percentText, sentenceText, timeText } from "./wording.ts"

test.each([
  [0, "0 %"],
  [0.57, "57 %"],
  [0.9499, "94.9 %"],
  [1, "100 %"],
])("a share of %s is %s: rounded down, without the errors of binary fractions", (share, text) => {
  expect(percentText(share)).toBe(text)
})

test.each([
  ["the server refused", "the server refused."],
  ["is this its address?", "is this its address?"],
  ["Done.", "Done."],
])("the sentence %j ends once", (text, sentence) => {
  expect(sentenceText(text)).toBe(sentence)
})

test.each([
  [999, "999 B"],
  [1000, "1 kB"],
  [1_234_567, "1.2 MB"],
])("%s bytes are %s", (bytes, text) => {
  expect(bytesText(bytes)).toBe(text)
})

test.each([
  [119_000, "119 seconds"],
  [120_000, "2 minutes"],
  [172_800_000, "2 days"],
])("%s ms are %s", (ms, text) => {
  expect(durationText(ms)).toBe(text)
})

test("a number that is no time is shown as it is", () => {
  expect(timeText(9e15)).toBe("9000000000000000")
})
