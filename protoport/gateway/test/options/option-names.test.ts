import { expect, test } from "vitest";
// oxfmt-ignore
import { arrayOf, arrayOfStrings, integerBetween, nearestName, type OptionNames, refuseUnknownOptions, required,
  stringOr } from "../../src/http/option-checks.ts";

interface Options {
  readonly path: string;
  readonly readMaxBytes?: number;
  readonly port?: number;
  readonly waitMs?: number;
  readonly limits?: { readonly requests?: number; readonly requestTimeoutMs?: number };
  readonly signal?: AbortSignal;
  readonly retry?: "off" | { readonly attempts: number };
  readonly labels?: readonly string[];
  readonly issuers?: readonly { readonly url: string; readonly audience?: string }[];
}

// oxfmt-ignore
const names: OptionNames<Options> = {
  path: required, readMaxBytes: true, port: integerBetween(1, 65_535),
  waitMs: integerBetween(0, Number.POSITIVE_INFINITY), limits: { requests: true, requestTimeoutMs: true },
  signal: undefined, retry: stringOr({ attempts: required }), labels: arrayOfStrings(),
  issuers: arrayOf({ url: required, audience: true }),
};

test.each<[name: string, options: object]>([
  ["known option names", { readMaxBytes: 1, limits: { requests: 1 }, signal: new AbortController().signal }],
  ["the required option alone", {}],
  ["undefined as an option's value", { readMaxBytes: undefined, limits: undefined }],
  ["a string for an option that may be an object", { retry: "off" }],
  ["an object for an option that may be a string", { retry: { attempts: 1 } }],
  ["an array of objects", { issuers: [{ url: "a" }, { url: "b", audience: "c" }] }],
  ["the least integers", { port: 1, waitMs: 0 }],
  ["the greatest integers", { port: 65_535, waitMs: Number.POSITIVE_INFINITY }],
  ["an object for an option with unchecked values", { readMaxBytes: { a: 1 } }],
])("refuseUnknownOptions() accepts %s without an error", (_name, options) => {
  expect(() => refuseUnknownOptions({ path: "a", ...options }, names, "create")).not.toThrow();
});

test.each<{ name: string; options: object; message: string }>(
  // oxfmt-ignore
  [
      { name: "a misspelled name and suggests the nearest", options: { readMaxByte: 1 },
        message: 'unknown option "readMaxByte", did you mean "readMaxBytes"?' },
      { name: "a misspelled name whose value is undefined", options: { sginal: undefined },
        message: 'unknown option "sginal", did you mean "signal"?' },
      { name: "a name unlike any option and lists all names", options: { colour: 1 },
        message:
        'unknown option "colour"; create accepts "path", "readMaxBytes", "port", "waitMs", "limits", "signal", "retry", "labels", "issuers"' },
      { name: "a name that every object inherits, such as constructor", options: { constructor: 1 },
        message:
        'unknown option "constructor"; create accepts "path", "readMaxBytes", "port", "waitMs", "limits", "signal", "retry", "labels", "issuers"' },
      { name: "a misspelled name inside an option and suggests the nearest", options: { limits: { request: 1 } },
        message: 'unknown option "limits.request", did you mean "limits.requests"?' },
      { name: "an unknown name inside an option", options: { limits: { signal: 1 } },
        message: 'unknown option "limits.signal"; create accepts "limits.requests", "limits.requestTimeoutMs"' },
      { name: "an unknown name inside the second item of an array",
        options: { issuers: [{ url: "a" }, { url: "b", audiences: "c" }] },
        message: 'unknown option "issuers[1].audiences", did you mean "issuers[1].audience"?' },
      { name: "an item of an array without its required option", options: { issuers: [{ url: "a" }, {}] },
        message: 'create requires the option "issuers[1].url"' },
      { name: "an object instead of an array", options: { issuers: { url: "a" } },
        message: 'option "issuers" of create must be an array, got an object' },
      { name: "a string instead of an array of strings", options: { labels: "a" },
        message: 'option "labels" of create must be an array, got string' },
      { name: "an item of an array that is not a string", options: { labels: ["a", 1] },
        message: 'option "labels[1]" of create must be a string, got number' },
      { name: "an item of an array that is not an object", options: { issuers: ["a"] },
        message: 'option "issuers[0]" of create must be an object, got string' },
      { name: "a number instead of an object", options: { limits: 1 },
        message: 'option "limits" of create must be an object, got number' },
      { name: "null instead of an object", options: { limits: null },
        message: 'option "limits" of create must be an object, got null' },
      { name: "an array instead of an object", options: { limits: [1] },
        message: 'option "limits" of create must be an object, got an array' },
      ...[0, 65_536, 1.5, Number.NaN, Number.POSITIVE_INFINITY].map((port) => ({
        name: `${port} as an integer from 1 to 65535`,
        options: { port },
        message: `option "port" of create must be an integer between 1 and 65535, got ${port}`,
      })),
      { name: "a string instead of an integer", options: { waitMs: "1" },
        message: 'option "waitMs" of create must be an integer between 0 and Infinity, got string' },
      { name: "an unknown name inside an option that may be a string", options: { retry: { attempt: 1, attempts: 1 } },
        message: 'unknown option "retry.attempt", did you mean "retry.attempts"?' },
      { name: "several unknown names in one error", options: { readMaxByte: 1, limits: { request: 1 } },
        message:
        'unknown option "readMaxByte", did you mean "readMaxBytes"?\nunknown option "limits.request", did you mean "limits.requests"?' },
    ],
)("refuseUnknownOptions() refuses $name", ({ options, message }) => {
  const error = Object.assign(new TypeError(message), { code: "ERR_OPTIONS" });
  expect(() => refuseUnknownOptions({ path: "a", ...options }, names, "create")).toThrow(error);
});

test.each<{ options: object; kind: unknown }>([
  { options: {}, kind: required },
  { options: { path: undefined }, kind: required },
  { options: {}, kind: arrayOf({ url: required }, required) },
  { options: {}, kind: arrayOfStrings(required) },
])("refuseUnknownOptions() refuses $options without the required option", ({ options, kind }) => {
  expect(() => Reflect.apply(refuseUnknownOptions, undefined, [options, { path: kind }, "create"])).toThrow(
    Object.assign(new TypeError('create requires the option "path"'), { code: "ERR_OPTIONS" }),
  );
});

test.each<{ options: unknown; type: string }>([
  { options: undefined, type: "undefined" },
  { options: null, type: "null" },
  { options: 7, type: "number" },
  { options: ["readMaxBytes"], type: "an array" },
])("refuseUnknownOptions() refuses $options instead of an object", ({ options, type }) => {
  expect(() => Reflect.apply(refuseUnknownOptions, undefined, [options, names, "create"])).toThrow(
    `create requires an object of options, got ${type}`,
  );
});

const shipping = "shop.orders.fulfilment.warehouse.shipping.v1.ShippingService.ListShipments";

test.each([
  { misspelled: "readMaxByte", names: ["readMaxBytes", "writeMaxBytes"], nearest: "readMaxBytes" },
  { misspelled: "hots", names: ["port", "host"], nearest: "host" },
  { misspelled: "cros", names: ["codegen", "cors"], nearest: "cors" },
  { misspelled: "ocr", names: ["cors"], nearest: undefined },
  { misspelled: "CORS", names: ["codegen", "cors"], nearest: "cors" },
  { misspelled: "auth", names: ["upstreams", "authentication"], nearest: "authentication" },
  { misspelled: "connect", names: ["connections", "connectTimeoutMs"], nearest: undefined },
  { misspelled: "au", names: ["authentication"], nearest: undefined },
  { misspelled: "hosts", names: ["port", "host"], nearest: "host" },
  { misspelled: shipping.replace("Service", "Servce"), names: [shipping], nearest: shipping },
  { misspelled: "x", names: [], nearest: undefined },
])("nearestName() returns $nearest when $misspelled is misspelled", ({ misspelled, names: known, nearest }) => {
  expect(nearestName(misspelled, known)).toBe(nearest);
});

test("nearestName() returns undefined quickly for a very long name", () =>
  expect(nearestName("a".repeat(1_000_000), ["b".repeat(999_999)])).toBeUndefined());
