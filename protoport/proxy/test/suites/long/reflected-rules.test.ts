import { create, createRegistry, type MessageInitShape } from "@bufbuild/protobuf";
import type { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { FieldRulesSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { file_buf_validate_validate } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { expect, test, vi } from "vitest";
import { openValidation } from "../../../../gateway/src/validation/index.ts";
import { notesWith } from "../../../../testing/src/gateway/notes.ts";
import { startProxy, startReflectingServer, type TestProxy } from "@protoport/testing/proxy";

// Rules that an upstream sends by reflection, including hostile ones.

type File = MessageInitShape<typeof FileDescriptorProtoSchema>;
type Rules = MessageInitShape<typeof FieldRulesSchema>;
const string = (value: { minLen?: bigint; pattern?: string }): Rules => ({ type: { case: "string", value } });
const untrusted = await openValidation({ untrusted: true });

async function start(file: File, validation = untrusted): Promise<TestProxy & AsyncDisposable> {
  const upstream = await startReflectingServer([file, file_buf_validate_validate.proto]);
  try {
    const upstreamOptions = { descriptors: "reflection" } as const;
    const proxy = await startProxy(`http://${upstream.address}`, [], { validation, upstreamOptions });
    return {
      ...proxy,
      async [Symbol.asyncDispose]() {
        await proxy[Symbol.asyncDispose]();
        await upstream[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await upstream[Symbol.asyncDispose]();
    throw error;
  }
}

async function add({ baseUrl }: TestProxy, note: object): Promise<unknown> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${baseUrl}/notes.Notes/Add`, { method: "POST", headers, body: JSON.stringify(note) });
  return await response.json();
}

test("standard rules from reflection are checked before the call is forwarded", async () => {
  await using proxy = await start(notesWith(string({ minLen: 2n, pattern: "^[a-z]*$" })));
  expect(await add(proxy, { text0: "a" })).toMatchObject({ message: "text0: must be at least 2 characters" });
  expect(await add(proxy, { text0: "A1" })).toMatchObject({ code: "invalid_argument" });
  // The upstream has the definition but not the service.
  expect(await add(proxy, { text0: "ab" })).toMatchObject({ code: "unimplemented" });
});

test("an interrupted first check does not disable the rules", async () => {
  await using upstreamRules = await start(notesWith(string({ minLen: 2n })));
  const { services } = upstreamRules.proxy;
  const note = services[0]?.methods[0]?.input ?? expect.unreachable("no service");
  const check = untrusted.prepare(services, createRegistry(note))(note);
  const { fields } = note;
  // Suspends the process once, as a busy machine does.
  const suspend = vi.fn<() => void>().mockImplementationOnce(() => {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400);
  });
  Object.defineProperty(note, "fields", { get: () => (suspend(), fields) });
  const tooShort = create(note, { text0: "a" });
  expect(() => check?.(tooShort, Object.create(null))).toThrow("text0: must be at least 2 characters");
});

test("evaluating a slow pattern is interrupted, and other calls continue", async () => {
  const slow = string({ pattern: "^(a?){1000}a{1000}$|^$" });
  await using proxy = await start(notesWith(slow, string({ minLen: 2n })));
  expect(await add(proxy, { text0: "a".repeat(1_000_000), text1: "ab" })).toMatchObject({
    code: "invalid_argument",
    message: "a validation rule cannot be evaluated: it takes longer than 300 ms",
  });
  expect(await add(proxy, { text1: "a" })).toMatchObject({ message: "text1: must be at least 2 characters" });
});

test("a CEL rule from reflection prevents the start", async () =>
  await expect(start(notesWith({ celExpression: ["this != 'x'"] }))).rejects.toThrow(
    "the validation rules are not accepted from a server: notes.Note.text0 has a rule in CEL",
  ));

test("rules from reflection prevent the start if validation lacks `untrusted`", async () =>
  await expect(start(notesWith(), await openValidation())).rejects.toThrow(
    "validation by rules of a server, upstreams[0], requires openValidation({ untrusted: true })",
  ));
