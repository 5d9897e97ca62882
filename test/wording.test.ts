import { expect, test } from "vitest";
import { forbiddenPhrases, wordingErrors } from "../tools/wording/check.ts";

// tools/wording/terms.md lists the phrases. `npx node tools/wording/main.ts --check` prints the same errors.

const phrases = forbiddenPhrases();

test("all texts use the terms in tools/wording/terms.md", () => {
  expect(wordingErrors(phrases)).toEqual([]);
});

test("tools/wording/terms.md lists phrases to avoid", () => {
  expect(phrases.length).toBeGreaterThan(10);
});
