// oxfmt-ignore
import { create, createFileRegistry, createRegistry, type DescService, type MessageInitShape, type Registry,
  setExtension } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
// oxfmt-ignore
import { type FieldRulesSchema, file_buf_validate_validate, StringRulesSchema
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import type { ServiceImpl } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { notesWith, withPredefined } from "../../../testing/src/gateway/notes.ts";
// oxfmt-ignore
import { AccountSchema, AddressSchema, ReceiptSchema, SignupService
} from "../../../testing/src/gen/signup/v1/signup_pb.ts";
import { createTestGateway } from "../../../testing/src/gateway/test-gateway.ts";
import { openValidation } from "../../src/validation/index.ts";

// The predefined rule `notes.short`, an extension of string rules that CEL evaluates.

/** Returns a registry with `notes.short`, and with `notes.Notes`, whose request has a string field for each rule. */
function registryWith(...rules: readonly MessageInitShape<typeof FieldRulesSchema>[]): Registry {
  const file = create(FileDescriptorProtoSchema, withPredefined(notesWith(...rules)));
  return createFileRegistry(file, () => file_buf_validate_validate);
}

/** Returns rules for a string field that must be short. */
function shortText(): MessageInitShape<typeof FieldRulesSchema> {
  const short = registryWith().getExtension("notes.short") ?? expect.unreachable("no extension");
  const value = create(StringRulesSchema);
  setExtension(value, short, true);
  return { type: { case: "string", value } };
}

const registry = registryWith(shortText());
const notes = registry.getService("notes.Notes") ?? expect.unreachable("no service");
const none: Partial<ServiceImpl<DescService>> = {};
const handlers = Object.assign(none, { add: () => ({}) });

test.each([
  { name: "accepts a request that satisfies", text0: "12345678", httpStatus: 200 },
  { name: "refuses a request that violates", text0: "123456789", httpStatus: 400 },
])("the gateway $name a predefined rule", async ({ text0, httpStatus }) => {
  const validation = await openValidation();
  const { fetch } = createTestGateway({ routes: (router) => router.service(notes, handlers), validation });
  const response = await fetch(
    new Request("http://gateway/notes.Notes/Add", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ text0 }),
    }),
  );
  expect(response.status).toBe(httpStatus);
});

test("accepts evaluates the predefined rules of the message's file", async () => {
  const validation = await openValidation();
  const note = registry.getMessage("notes.Note") ?? expect.unreachable("no message");
  expect(["12345678", "123456789"].map((text0) => validation.accepts(note, { text0 }))).toEqual([true, false]);
});

test("the gateway does not start if a predefined rule cannot be compiled", async () => {
  const validation = await openValidation();
  const file = create(FileDescriptorProtoSchema, withPredefined(notesWith(), "size(this"));
  const broken = createFileRegistry(file, () => file_buf_validate_validate);
  expect(() => validation.prepare([notes], broken)).toThrow(/\n- notes\.short: /);
});

test("validation checks only types that are requests with rules", async () => {
  const checkOf = (await openValidation()).prepare([SignupService], createRegistry(SignupService));
  const types = [AccountSchema, ReceiptSchema, AddressSchema];
  expect(types.map((type) => typeof checkOf(type))).toEqual(["function", "undefined", "undefined"]);
});

test("untrusted validation refuses a predefined rule in CEL", async () => {
  const validation = await openValidation({ untrusted: true });
  expect(() => validation.prepare([notes], registry)).toThrow("notes.short has a rule in CEL");
});
