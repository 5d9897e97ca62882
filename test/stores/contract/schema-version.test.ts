import { describe, expect, test } from "vitest";
import { assertUsableSchema, noSchema, schemaAfter } from "../../../src/stores/contract/schema-version.ts";
import { StoreOpenError } from "../../../src/stores/contract/store-options.ts";

describe("schemaAfter", () => {
  test.each([
    { name: "no step", steps: [], schema: { version: 1, oldestServer: 1 } },
    { name: "a compatible step", steps: [{}], schema: { version: 2, oldestServer: 1 } },
    { name: "a breaking step", steps: [{ breaking: true as const }], schema: { version: 2, oldestServer: 2 } },
    { name: "two compatible steps", steps: [{}, {}], schema: { version: 3, oldestServer: 2 } },
    {
      name: "a breaking step and then a compatible step",
      steps: [{ breaking: true as const }, {}],
      schema: { version: 3, oldestServer: 2 },
    },
  ])("after $name, returns the version and the oldest supported release", ({ steps, schema }) => {
    expect(schemaAfter(steps)).toEqual(schema);
  });
});

describe("a release with schema version 2", () => {
  test.each([
    { name: "its own schema", schema: { version: 2, oldestServer: 1 } },
    { name: "its own schema after a breaking step", schema: { version: 2, oldestServer: 2 } },
    { name: "the next schema after a compatible step", schema: { version: 3, oldestServer: 2 } },
  ])("accepts $name as usable", ({ schema }) => {
    expect(() => assertUsableSchema(schema, 2)).not.toThrow();
  });

  test.each([
    {
      name: "a missing schema",
      schema: noSchema,
      problem:
        'it does not contain a plant store yet: only if this is a new store, run "plantstore migrate" to create it; otherwise correct the location, or, only if no server has it open, restore it',
    },
    {
      name: "the previous schema",
      schema: { version: 1, oldestServer: 1 },
      problem:
        'its schema has version 1, but this release supports versions 2 and 3: run "plantstore migrate" of this release',
    },
    {
      name: "the next schema after a breaking step",
      schema: { version: 3, oldestServer: 3 },
      problem:
        "its schema has version 3, which requires a release of schema version 3 or newer, " +
        "but this release has schema version 2: use a newer release",
    },
    {
      name: "a schema two versions newer",
      schema: { version: 4, oldestServer: 3 },
      problem:
        "its schema has version 4, which requires a release of schema version 3 or newer, " +
        "but this release has schema version 2: use a newer release",
    },
    {
      name: "a schema two versions newer that claims to be compatible",
      schema: { version: 4, oldestServer: 1 },
      problem:
        "its schema has version 4, which requires a release of schema version 3 or newer, " +
        "but this release has schema version 2: use a newer release",
    },
  ])("refuses $name, and reports what to do", ({ schema, problem }) => {
    expect(() => assertUsableSchema(schema, 2)).toThrow(new StoreOpenError(problem));
  });
});
