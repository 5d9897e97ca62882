import { describe, expect, test } from "vitest";
import { nearestName, type OptionNames, refuseUnknownOptions, required } from "../../src/options/index.ts";

interface Options {
  readonly path: string;
  readonly readMaxBytes?: number;
  readonly limits?: { readonly requests?: number; readonly requestTimeoutMs?: number };
  readonly signal?: AbortSignal;
}

const names: OptionNames<Options> = {
  path: required,
  readMaxBytes: true,
  limits: { requests: true, requestTimeoutMs: true },
  signal: undefined,
};

describe("refuseUnknownOptions()", () => {
  test.each<{ name: string; options: object }>([
    { name: "all names", options: { readMaxBytes: 1, limits: { requests: 1 }, signal: new AbortController().signal } },
    { name: "no names", options: {} },
    { name: "a value that is missing", options: { readMaxBytes: undefined, limits: undefined } },
    { name: "null in the place of an object", options: { limits: null } },
    { name: "members of a value that is no object of options", options: { readMaxBytes: { a: 1 } } },
  ])("accepts $name", ({ options }) => {
    expect(() => refuseUnknownOptions({ path: "a", ...options }, names, "create")).not.toThrow();
  });

  test.each<{ name: string; options: object; message: string }>([
    {
      name: "a misspelled name, with the nearest",
      options: { readMaxByte: 1 },
      message: 'unknown option "readMaxByte", did you mean "readMaxBytes"?',
    },
    {
      name: "a misspelled name whose value is undefined",
      options: { sginal: undefined },
      message: 'unknown option "sginal", did you mean "signal"?',
    },
    {
      name: "a name that no other is near, with all names",
      options: { colour: 1 },
      message: 'unknown option "colour"; create accepts "path", "readMaxBytes", "limits", "signal"',
    },
    {
      name: "a name that every object inherits",
      options: { constructor: 1 },
      message: 'unknown option "constructor"; create accepts "path", "readMaxBytes", "limits", "signal"',
    },
    {
      name: "a name inside an option, with the nearest there",
      options: { limits: { request: 1 } },
      message: 'unknown option "limits.request", did you mean "limits.requests"?',
    },
    {
      name: "a name inside an option that no other is near there",
      options: { limits: { signal: 1 } },
      message: 'unknown option "limits.signal"; create accepts "limits.requests", "limits.requestTimeoutMs"',
    },
    {
      name: "several names, all at once",
      options: { readMaxByte: 1, limits: { request: 1 } },
      message:
        'unknown option "readMaxByte", did you mean "readMaxBytes"?\n' +
        'unknown option "limits.request", did you mean "limits.requests"?',
    },
  ])("refuses $name", ({ options, message }) => {
    const error = Object.assign(new TypeError(message), { code: "ERR_OPTIONS" });
    expect(() => refuseUnknownOptions({ path: "a", ...options }, names, "create")).toThrow(error);
  });
});

test.each([{ options: {} }, { options: { path: undefined } }])(
  "an option that is required is missing in $options",
  ({ options }) => {
    expect(() => Reflect.apply(refuseUnknownOptions, undefined, [options, names, "create"])).toThrow(
      Object.assign(new TypeError('create requires the option "path"'), { code: "ERR_OPTIONS" }),
    );
  },
);

test.each<{ options: unknown; type: string }>([
  { options: undefined, type: "undefined" },
  { options: null, type: "null" },
  { options: 7, type: "number" },
  { options: ["readMaxBytes"], type: "an array" },
])("refuseUnknownOptions() refuses $options in the place of an object", ({ options, type }) => {
  expect(() => Reflect.apply(refuseUnknownOptions, undefined, [options, names, "create"])).toThrow(
    `create requires an object of options, got ${type}`,
  );
});

describe("nearestName()", () => {
  test.each([
    { misspelt: "readMaxByte", names: ["readMaxBytes", "writeMaxBytes"], nearest: "readMaxBytes" },
    { misspelt: "hots", names: ["port", "host"], nearest: undefined },
    { misspelt: "hosts", names: ["port", "host"], nearest: "host" },
    { misspelt: "x", names: [], nearest: undefined },
    // Comparing all letters would take for ever.
    { misspelt: "a".repeat(1_000_000), names: ["a".repeat(999_999)], nearest: undefined },
  ])("of $misspelt.length letters", ({ misspelt, names: known, nearest }) => {
    expect(nearestName(misspelt, known)).toBe(nearest);
  });
});
