import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What an audit of accessibility found: each violation with its place, and the rules that were kept. */
export interface AccessAudit {
  readonly violations: readonly string[];
  readonly passes: readonly string[];
}

/** Audits a page as it is shown now. */
export async function auditAccess(page: Page): Promise<AccessAudit> {
  // It runs next to the page's own scripts, outside of its content security policy.
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
