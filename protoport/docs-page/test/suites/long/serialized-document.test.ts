import { expect, test } from "vitest";
import { serializeDocument } from "../../../src/serialized-document.ts";

test("serializeDocument refuses a document of more than 256 MiB", async () => {
  const text = "a".repeat(16 * 1024 * 1024);
  const members = Array.from({ length: 16 }, (_, at) => [`a${at}`, text] as const);
  await expect(serializeDocument(Object.fromEntries(members))).rejects.toThrow("is larger than 268435456 bytes");
});
