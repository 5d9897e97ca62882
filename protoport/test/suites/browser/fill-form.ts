import type { Page } from "playwright-core";

/** Fills in the form for the operation that a page shows, by field names, after opening hidden fields. */
export async function fillForm(page: Page, fields: Readonly<Record<string, string>>): Promise<void> {
  const more = page.locator("form > details:not([open]) > summary");
  if (await more.isVisible()) await more.click();
  for (const [name, value] of Object.entries(fields)) {
    const field = page.getByLabel(new RegExp(`^${name.replace(".", "\\.")}\\b`));
    const isChoice = (await field.evaluate((element) => element.localName)) === "select";
    await (isChoice ? field.selectOption(value) : field.fill(value));
  }
}
