import type { DescMessage } from "@bufbuild/protobuf";
import { EmptySchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { createValidator, type Validator } from "@bufbuild/protovalidate";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { takeFault } from "../../src/serve/to-connect-error.ts";
import { FailedRules, findTypeErrors, sampleMessages } from "../../src/validation/evaluation-error.ts";
import { SinkSchema } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
// oxfmt-ignore
import { BookSchema, GetBookRequestSchema, ListBooksRequestSchema
} from "../../../testing/src/gen/library/v1/library_pb.ts";

beforeEach(() => vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => vi.useRealTimers());

/** Returns whether a rule's failure is reported to `onFault`. */
const isReported = (
  rules: FailedRules,
  text: string,
  type: typeof EmptySchema | typeof TimestampSchema = EmptySchema,
): boolean => takeFault(rules.errorFor(type, new Error(text))) !== undefined;

test("a rule's evaluation error is reported once per minute", () => {
  const rules = new FailedRules();
  for (let minute = 0; minute < 3; minute++) {
    expect([isReported(rules, "a"), isReported(rules, "a")]).toEqual([true, false]);
    vi.advanceTimersByTime(59_999);
    expect(isReported(rules, "a")).toBe(false);
    vi.advanceTimersByTime(1);
  }
});

test("a rule's evaluation error is reported on one line", () => {
  const { rawMessage } = new FailedRules().errorFor(EmptySchema, new Error("a\nb"));
  expect(rawMessage).toBe("a validation rule cannot be evaluated: a b");
});

test("evaluation errors of two rules or two types are reported separately", () => {
  const rules = new FailedRules();
  const want = [true, true, true];
  expect([isReported(rules, "a"), isReported(rules, "b"), isReported(rules, "a", TimestampSchema)]).toEqual(want);
});

test("at most 64 evaluation errors are reported per minute", () => {
  const rules = new FailedRules();
  const reportedOf100 = (): number =>
    Array.from({ length: 100 }, (_, at) => isReported(rules, `failure ${at}`)).filter(Boolean).length;
  expect(reportedOf100()).toBe(64);
  vi.advanceTimersByTime(60_000);
  expect(reportedOf100()).toBe(64);
});

const expressions = [`this.name == "a b" || 'c-d' == ''`, "size_2"];
const words = ["a", "this", "name", "a b", "c-d", "", "size_2"];
const [empty = expect.unreachable(), full = expect.unreachable()] = sampleMessages(SinkSchema, expressions);
const entries = (value: unknown): object => Object.fromEntries(words.map((word) => [word, value]));

test("sampleMessages returns an empty message whose maps have all words as keys", () => {
  expect(empty).toMatchObject({ fString: "", fInt64: 0n, tags: [], choice: { case: undefined } });
  expect(empty).toMatchObject({ labels: entries("a"), palette: entries(1) });
  expect(empty).toMatchObject({ nestedById: { "1": {} }, counts: { true: 1 } });
});

test("sampleMessages returns a message with a value for each type", () => {
  const types = ["Double", "Float", "Int32", "Uint32", "Sint32", "Fixed32", "Sfixed32"];
  const longTypes = ["Int64", "Uint64", "Sint64", "Fixed64", "Sfixed64"];
  expect(full).toMatchObject(Object.fromEntries(types.map((type) => [`f${type}`, 1])));
  expect(full).toMatchObject(Object.fromEntries(longTypes.map((type) => [`f${type}`, 1n])));
  expect(full).toMatchObject({ fBool: true, fString: "a", fBytes: new Uint8Array(1), fEnum: 1, maybeInt64: 1n });
  expect(full).toMatchObject({ nullValue: 0, nested: { text: "" }, tags: ["a"], colors: [1], nesteds: [{ text: "" }] });
  expect(full).toMatchObject({ labels: entries("a"), palette: entries(1), counts: { true: 1 } });
  expect(Object.keys(Object(full).labels).toSorted()).toEqual(words.toSorted());
});

test("sampleMessages sets the first field of a oneof", () =>
  expect(full).toMatchObject({ choice: { case: "choiceText", value: "a" } }));

test("findTypeErrors evaluates a type in several input types only once", () => {
  const counts = new Map<string, number>();
  const validator = createValidator();
  const validate: Validator["validate"] = (type, message) => {
    counts.set(type.typeName, (counts.get(type.typeName) ?? 0) + 1);
    return validator.validate(type, message);
  };
  const inputs = [GetBookRequestSchema, ListBooksRequestSchema].map((input) => ({
    typesWithRules: new Set<DescMessage>([input, BookSchema]),
  }));
  expect(findTypeErrors({ validate }, inputs, new Map())).toEqual([]);
  // An empty message, and one with all fields.
  expect([...counts.values()]).toEqual([2, 2, 2]);
});
