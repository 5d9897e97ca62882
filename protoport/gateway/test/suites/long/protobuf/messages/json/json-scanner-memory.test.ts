import { expect, test } from "vitest";
import { JsonScanner } from "../../../../../../src/protobuf/messages/json/json-scanner.ts";
import { leastOf, retainedBytes } from "@protoport/testing/process";

test.each(
  // oxfmt-ignore
  [
    { what: "a string value", take: (scanner: JsonScanner) => scanner.readString(), of: (name: string) => name },
    { what: "a string value with an escape", take: (scanner: JsonScanner) => scanner.readString(),
      of: (name: string) => name.replace("number", String.raw`\u006eumber`) },
    { what: "an object key", take: (scanner: JsonScanner) => (scanner.openObject(), scanner.firstKey()),
      of: (name: string) => `{${name}:1}` },
  ],
)("$what does not keep the JSON text in memory", async ({ take, of }) => {
  const keep = async (): Promise<number> => {
    const before = await retainedBytes();
    const kept = Array.from({ length: 100 }, (_, at) =>
      take(new JsonScanner(of(JSON.stringify(`the order of number ${at}`)) + " ".repeat(100_000))),
    );
    const bytes = (await retainedBytes()) - before;
    expect(kept).toContain("the order of number 99");
    return bytes;
  };
  const limitBytes = 1_000_000;
  expect(await leastOf(keep, limitBytes)).toBeLessThan(limitBytes);
});
