import { expect, test } from "vitest";
import { SinkSchema } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { sampleMessages } from "../../src/validation/evaluation-error.ts";

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
  expect(full).toMatchObject({
    ...Object.fromEntries(
      ["Double", "Float", "Int32", "Uint32", "Sint32", "Fixed32", "Sfixed32"].map((type) => [`f${type}`, 1]),
    ),
    ...Object.fromEntries(["Int64", "Uint64", "Sint64", "Fixed64", "Sfixed64"].map((type) => [`f${type}`, 1n])),
    fBool: true,
    fString: "a",
    fBytes: new Uint8Array(1),
    fEnum: 1,
    maybeInt64: 1n,
    nullValue: 0,
    nested: { text: "" },
    tags: ["a"],
    colors: [1],
    nesteds: [{ text: "" }],
    labels: entries("a"),
    palette: entries(1),
    counts: { true: 1 },
  });
  expect(Object.keys(Object(full).labels).toSorted()).toEqual(words.toSorted());
});

test("sampleMessages sets the first field of a oneof", () => {
  expect(full).toMatchObject({ choice: { case: "choiceText", value: "a" } });
});
