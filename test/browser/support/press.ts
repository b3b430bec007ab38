/** A person's actions on buttons and dialogs. */
import type { Tab } from "./tab.ts"

export async function press({ page }: Tab, name: string): Promise<void> {
  await page.getByRole("button", { name, exact: true }).first().click()
}

/** The button of the dialog that is open. */
export async function confirm({ page }: Tab, name: string): Promise<void> {
  await page.getByRole("dialog").getByRole("button", { name, exact: true }).click()
}

/** Resolves when a notice says so. */
export async function told({ page }: Tab, sentence: string | RegExp): Promise<void> {
  await page.locator(".notice").getByText(sentence).waitFor()
}

/** A row of the page's table, by a text in it. */
export function rowOf({ page }: Tab, text: string) {
  return page.getByRole("row").filter({ hasText: text })
}

/** A field of the dialog that is open. */
export function field({ page }: Tab, label: string) {
  return page.getByRole("dialog").getByLabel(label, { exact: true })
}

/** A state that the page shows. */
export function badge({ page }: Tab, state: string) {
  return page.locator("main .badge").getByText(new RegExp(`(^|\\W )${state}$`))
}

/** A page may read a deleted row once more, before it leads to the list. */
export const GONE = /answered 404/
