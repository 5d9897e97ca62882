import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** An accessibility audit's result, which has each violation with its element, and the rules that passed. */
export type AccessAudit = { readonly violations: readonly string[]; readonly passes: readonly string[] };

export async function auditAccess(page: Page): Promise<AccessAudit> {
  // Runs in an isolated world, which the page's content security policy does not affect.
  await page.evaluate(axeSource);
  return await page.evaluate(async () => {
    const axe: { run(): Promise<Record<"violations" | "passes", { id: string; nodes: { html: string }[] }[]>> } =
      Reflect.get(window, "axe");
    const { violations, passes } = await axe.run();
    return {
      violations: violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`)),
      passes: passes.map(({ id }) => id),
    };
  });
}
