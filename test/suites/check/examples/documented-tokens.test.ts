import { expect, test } from "vitest";
import { issuePlantToken } from "../../../../src/server/plant-tokens.ts";
import { readPage } from "../../../../protoport/test/support/docs/page-blocks.ts";

test("tokens match the pattern for secret scanners in docs/how-to/authentication.md", async () => {
  const [, pattern = ""] = /`(plantstore_\[.*?)`/.exec(readPage("docs/how-to/authentication.md")) ?? [];
  for (let made = 0; made < 100; made++)
    expect(await issuePlantToken({ name: "shop", scopes: "-", expiry: "-", file: undefined })).toMatchObject({
      value: { token: expect.stringMatching(new RegExp(`^${pattern}$`)) },
    });
});
