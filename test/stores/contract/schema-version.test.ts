import { describe, expect, test } from "vitest";
import { assertUsableSchema, noSchema, schemaAfter } from "../../../src/stores/contract/schema-version.ts";
import { StoreOpenError } from "../../../src/stores/contract/store-options.ts";

describe("schemaAfter", () => {
  test.each([
    ["no step", [], { version: 1, oldestServer: 1 }],
    ["a compatible step", [{}], { version: 2, oldestServer: 1 }],
    ["a breaking step", [{ breaking: true as const }], { version: 2, oldestServer: 2 }],
    ["two compatible steps", [{}, {}], { version: 3, oldestServer: 2 }],
    ["a breaking step and then a compatible step", [{ breaking: true as const }, {}], { version: 3, oldestServer: 2 }],
  ])("after %s, returns the version and the oldest supported release", (_name, steps, schema) => {
    expect(schemaAfter(steps)).toEqual(schema);
  });
});

describe("a release with schema version 2", () => {
  test.each([
    { name: "its own schema", schema: { version: 2, oldestServer: 1 } },
    { name: "its own schema after a breaking step", schema: { version: 2, oldestServer: 2 } },
    { name: "the next schema after a compatible step", schema: { version: 3, oldestServer: 2 } },
  ])("accepts $name as usable", ({ schema }) => expect(() => assertUsableSchema(schema, 2)).not.toThrow());

  test.each(
    // oxfmt-ignore
    [
      ["a missing schema", noSchema,
        'it does not contain a plant store yet: only if this is a new store, run "plantstore migrate" to create it; otherwise correct the location, or, only if no server has it open, restore it'],
      ["the previous schema", { version: 1, oldestServer: 1 },
        'its schema has version 1, but this release supports versions 2 and 3: run "plantstore migrate" of this release'],
      ["the next schema after a breaking step", { version: 3, oldestServer: 3 },
        "its schema has version 3, which requires a release of schema version 3 or newer, " +
          "but this release has schema version 2: use a newer release"],
      ["a schema two versions newer", { version: 4, oldestServer: 3 },
        "its schema has version 4, which requires a release of schema version 3 or newer, " +
          "but this release has schema version 2: use a newer release"],
      ["a schema two versions newer that claims to be compatible", { version: 4, oldestServer: 1 },
        "its schema has version 4, which requires a release of schema version 3 or newer, " +
          "but this release has schema version 2: use a newer release"],
    ],
  )("refuses %s, and reports what to do", (_name, schema, problem) => {
    expect(() => assertUsableSchema(schema, 2)).toThrow(new StoreOpenError(problem));
  });
});
