import { create, type DescService, setExtension } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, MessageOptionsSchema } from "@bufbuild/protobuf/wkt";
// oxfmt-ignore
import { file_buf_validate_validate, message, MessageRulesSchema
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { expect, test } from "vitest";
import { AddressSchema, SignupService } from "../../../testing/src/gen/signup/v1/signup_pb.ts";
import { exchangeHttp1, serviceIn, statelessRequest } from "@protoport/testing";
import { notesWith } from "../../../testing/src/gateway/notes.ts";
import { startSignup } from "../../../testing/src/gateway/signup.ts";
import { createOpenApi, type OpenApiOptions, type OpenApiSchema } from "../../src/openapi/index.ts";
import { createMcp } from "../../src/mcp/index.ts";
import { openValidation } from "../../src/validation/index.ts";

const validation = await openValidation();
const options = { info: { title: "Signup", version: "1.0.0" } };
const schemasOf = (openApiOptions: OpenApiOptions): Readonly<Record<string, OpenApiSchema>> =>
  createOpenApi([SignupService], openApiOptions).components?.schemas ?? expect.unreachable("no schemas");

test("a message's schema contains keywords for its rules", () =>
  expect(schemasOf({ ...options, validation })).toMatchObject({
    // oxfmt-ignore
    Account: {
      required: ["name", "email", "age"],
      properties: { name: { type: "string", minLength: 2, maxLength: 20 }, email: { type: "string", format: "email" },
        age: { type: "integer", minimum: 18, exclusiveMaximum: 130 }, addresses: { type: "array", maxItems: 50_000 },
        rate: { minimum: 0.1 }, phones: { propertyNames: { enum: ["1", "2"] } },
        labels: { propertyNames: { maxLength: 1_000_000 }, additionalProperties: { minLength: 1 } } },
    },
    Address: { required: ["zip"], properties: { zip: { pattern: "^[0-9]{5}$" } } },
  }));

test("a tool's input schema contains keywords for the rules", async () => {
  const mcp = createMcp({ tools: ["signup.v1.SignupService.Register"], validation });
  await using signup = await startSignup(validation, { mcp });
  const { body } = await exchangeHttp1(signup.address, statelessRequest("tools/list", {}));
  const inputSchema = { required: ["name", "email", "age"], properties: { name: { minLength: 2 } } };
  expect(JSON.parse(body.toString())).toMatchObject({ result: { tools: [{ inputSchema }] } });
});

test("without the option validation, the schema has no keywords for rules", () => {
  const { Account: account } = schemasOf(options);
  expect(account).not.toHaveProperty("required");
  expect(account).toMatchObject({ properties: { name: { type: "string" }, email: { type: "string" } } });
});

test.each([
  { example: "a matching string", kind: "trusted", untrusted: false, want: ["12345"] },
  { example: "no string", kind: "untrusted", untrusted: true, want: [] },
])("exampleOf returns $example for a pattern in $kind rules", async ({ untrusted, want }) => {
  expect((await openValidation({ untrusted })).exampleOf(AddressSchema.field.zip)).toEqual(want);
});

test("the gateway accepts the example in the document", async () => {
  const [example] = expectArray(schemasOf({ ...options, validation })["Account"]?.["examples"]);
  await using signup = await startSignup(validation);
  const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(example) };
  const response = await fetch(`http://127.0.0.1:${String(signup.address.port)}/accounts`, init);
  expect([response.status, await response.text()]).toEqual([200, '{"count":1}']);
});

const expectArray = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value : expect.unreachable("not an array");

/** Returns a service whose request has two strings and a rule for the message. */
function notesThat(expression: string): DescService {
  const file = create(FileDescriptorProtoSchema, notesWith({}, {}));
  const rules = create(MessageRulesSchema, { celExpression: [expression] });
  for (const note of file.messageType) {
    note.options = create(MessageOptionsSchema);
    setExtension(note.options, message, rules);
  }
  return serviceIn(file, "notes.Notes", file_buf_validate_validate);
}

test.each([
  ["the generated example if its rule accepts it", "this.text0 == this.text1", [{ text0: "text", text1: "text" }]],
  ["no example if its rule refuses all generated examples", "this.text0 != this.text1", undefined],
])("a message has %s", (_name, expression, want) => {
  const rules = [{ selector: "notes.Notes.Add", pattern: { case: "post", value: "/notes" }, body: "*" }] as const;
  const { components } = createOpenApi([notesThat(expression)], { ...options, validation, rest: { rules } });
  expect(components?.schemas?.["Note"]).toHaveProperty("properties.text0");
  expect(components?.schemas?.["Note"]?.["examples"]).toEqual(want);
});
