import { create, createFileRegistry, type MessageInitShape } from "@bufbuild/protobuf";
import * as protovalidate from "@bufbuild/protovalidate";
import * as schemas from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { expect, test } from "vitest";
import { BadRequestSchema } from "../../src/protobuf/gen/google/rpc/error_details_pb.ts";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { SinkSchema } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { notesWith } from "../../../testing/src/gateway/notes.ts";
import { violationError } from "../../src/validation/open-validation.ts";

// A rule whose message has two lines, with the text of the request.
const file = create(FileDescriptorProtoSchema, notesWith({ celExpression: [String.raw`'bad\n' + this`] }));
const registry = createFileRegistry(file, () => schemas.file_buf_validate_validate);
const note = registry.getMessage("notes.Note") ?? expect.unreachable();
const all = protovalidate.createValidator();
const ids = (length: number): bigint[] => Array(length).fill(1n);
const nestedById = (length: number): Record<string, object> =>
  Object.fromEntries(ids(length).map((_, at) => [String(at), {}]));

test.each([
  { protocol: "rest", hasBadRequest: true },
  { protocol: "mcp", hasBadRequest: true },
  { protocol: "custom", hasBadRequest: true },
  { protocol: "connect", hasBadRequest: false },
  { protocol: "grpc", hasBadRequest: false },
  { protocol: "grpc-web", hasBadRequest: false },
])(
  "over $protocol, an error's details contain BadRequest ($hasBadRequest) on one line",
  ({ protocol, hasBadRequest }) => {
    const message = create(note, { text0: "x" });
    const { violations = [] } = all.validate(note, message);
    const error = violationError({ ...protovalidate, ...schemas }, all, note, message, violations, protocol);
    expect(error.rawMessage).toBe("text0: bad x");
    const fieldViolations = [{ field: "text0", description: "bad x" }];
    expect(error.findDetails(BadRequestSchema)).toMatchObject(hasBadRequest ? [{ fieldViolations }] : []);
  },
);

test.each([
  { length: 400, isListed: true },
  { length: 401, isListed: false },
])("a violation of $length characters is listed ($isListed) in an error's details", ({ length, isListed }) => {
  const message = create(note, { text0: "x".repeat(length - "text0bad ".length) });
  const { violations = [] } = all.validate(note, message);
  const error = violationError({ ...protovalidate, ...schemas }, all, note, message, violations, "grpc");
  expect(error.findDetails(schemas.ViolationsSchema)[0]?.violations).toHaveLength(isListed ? 1 : 0);
});

test.each<[name: string, init: MessageInitShape<typeof SinkSchema>, more: string]>([
  ["100 elements and a oneof", { ids: ids(100), choice: { case: "choiceText", value: "a" } }, " (and 1 more)"],
  ["101 elements", { ids: ids(101) }, ""],
  ["200,000 elements", { ids: ids(200_000) }, ""],
  ["100 elements in a list and a map", { ids: ids(50), nestedById: nestedById(50) }, " (and 1 more)"],
  ["101 elements in a list and a map", { ids: ids(50), nestedById: nestedById(51) }, ""],
  ["200 bytes in a field", { fBytes: new Uint8Array(200) }, " (and 1 more)"],
])('in a message with %s, the text after the first violation is "$2"', (_name, init, more) => {
  const message = create(SinkSchema, init);
  const { violations: [first = expect.unreachable()] = [] } = all.validate(note, create(note, { text0: "x" }));
  const twice = { validate: () => ({ kind: "invalid" as const, violations: [first, first] }) };
  const lister = Object.assign(Object.create(null), twice);
  const error = violationError({ ...protovalidate, ...schemas }, lister, SinkSchema, message, [first], "grpc");
  expect(error.rawMessage).toBe(`text0: bad x${more}`);
});
