import { expect, test } from "vitest";
import { createTokenText } from "../../protoport/auth/src/token-text.ts";
import { readPage } from "../../protoport/test/support/docs/page-blocks.ts";

test("tokens match the pattern for secret scanners in docs/how-to/authentication.md", () => {
  const [, pattern = ""] = /`(plantstore_\[.*?)`/.exec(readPage("docs/how-to/authentication.md")) ?? [];
  for (let made = 0; made < 100; made++) expect(createTokenText("plantstore_")).toMatch(new RegExp(`^${pattern}$`));
});
