import { ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { Code, ConnectError, createClient, type Client, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { SignupService } from "../../../testing/src/gen/signup/v1/signup_pb.ts";
import type { OnFault } from "../../src/index.ts";
import { startSignup, validAccount } from "../../../testing/src/gateway/signup.ts";
import { BadRequestSchema } from "../../src/protobuf/gen/google/rpc/error_details_pb.ts";
import { openValidation } from "../../src/validation/index.ts";
import { collect, shared } from "@protoport/testing";

// Requests that satisfy or violate buf.validate rules, as clients in each protocol send them.

const validation = await openValidation();
const server = shared(() => startSignup(validation, { interceptors: [refuseGuests] }));
/** An interceptor that refuses calls from guests, as one that checks a permission does. */
const refuseGuests: Interceptor = (next) => (request) => {
  if (request.header.has("guest")) throw new ConnectError("guests may not register", Code.PermissionDenied);
  return next(request);
};

const transports = { Connect: createConnectTransport, gRPC: createGrpcTransport, "gRPC-Web": createGrpcWebTransport };

function clientOf(name: keyof typeof transports): Client<typeof SignupService> {
  const baseUrl = `http://127.0.0.1:${String(server.address.port)}`;
  return createClient(SignupService, transports[name]({ baseUrl, httpVersion: "2" }));
}

async function* stream<T>(...items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

const short = { ...validAccount, name: "A" };

const errorOf = async (call: Promise<unknown>): Promise<ConnectError> =>
  await call.then(
    () => expect.unreachable("the call must fail"),
    (error: unknown) => ConnectError.from(error),
  );

describe.for(["Connect", "gRPC", "gRPC-Web"] as const)("validation over %s", (protocol) => {
  test("passes a valid request to the handler", () =>
    expect(clientOf(protocol).register(validAccount)).resolves.toMatchObject({ count: expect.any(Number) }));

  test("does not affect an RPC without rules", () =>
    expect(clientOf(protocol).ping({ count: 3 })).resolves.toMatchObject({ count: 3 }));

  const calls: readonly (readonly [string, (client: Client<typeof SignupService>) => Promise<unknown>])[] = [
    ["a unary request", (client) => client.register(short)],
    ["the request of a server stream", (client) => collect(client.registerAndWatch(short))],
    ["the second message of a client stream", (client) => client.import(stream(validAccount, short))],
    ["the second message of a bidirectional stream", (client) => collect(client.exchange(stream(validAccount, short)))],
  ];
  test.for(calls)("refuses %s that violates a rule, with error details", async ([, call]) => {
    const error = await errorOf(call(clientOf(protocol)));
    expect(error).toMatchObject({ code: Code.InvalidArgument, rawMessage: "name: must be at least 2 characters" });
    const [{ violations } = expect.unreachable("no violations")] = error.findDetails(ViolationsSchema);
    expect(violations).toMatchObject([{ ruleId: "string.min_len", field: { elements: [{ fieldName: "name" }] } }]);
    expect(error.findDetails(BadRequestSchema)).toEqual([]);
    expect(server.received).not.toContain("A");
  });

  test("lists all of a request's violations", async () => {
    const error = await errorOf(
      clientOf(protocol).register({ ...validAccount, name: "", age: 9, addresses: [{ zip: "x" }] }),
    );
    expect(error.rawMessage).toMatch(/^name: .* \(and 2 more\)$/);
    const [{ violations } = expect.unreachable("no violations")] = error.findDetails(ViolationsSchema);
    expect(violations.map(({ ruleId }) => ruleId)).toEqual(["string.min_len", "int32.gte_lt", "string.pattern"]);
  });
});

async function post(
  body: unknown,
  header: Readonly<Record<string, string>> = {},
  { address } = server,
): Promise<readonly [number, unknown]> {
  const response = await fetch(`http://127.0.0.1:${String(address.port)}/accounts`, {
    method: "POST",
    headers: { "content-type": "application/json", ...header },
    body: JSON.stringify(body),
  });
  return [response.status, await response.json()];
}

const badRequest = (...fieldViolations: readonly object[]): object =>
  expect.objectContaining({ "@type": "type.googleapis.com/google.rpc.BadRequest", fieldViolations });

describe("validation over REST", () => {
  test("responds to a violation with 400, BadRequest and Violations", async () => {
    const description = "must be at least 2 characters";
    const violations = expect.objectContaining({ "@type": "type.googleapis.com/buf.validate.Violations" });
    const details = [violations, badRequest({ field: "name", description })];
    const error = { code: 3, status: "INVALID_ARGUMENT", message: `name: ${description}`, details };
    await expect(post(short)).resolves.toEqual([400, error]);
  });

  test.for([
    [{ ...validAccount, name: validAccount.email }, "signup.v1.Account: the name must differ from the email address"],
    [{ ...validAccount, addresses: [{ zip: "12345" }, { zip: "1" }] }, /^addresses\[1\]\.zip: /],
    [{ ...validAccount, divisor: 1 }, /^a validation rule cannot be evaluated: /],
  ] as const)("responds to %j with 400 and the message %s in JSON", async ([body, message]) => {
    const text = typeof message === "string" ? message : expect.stringMatching(message);
    await expect(post(body)).resolves.toEqual([400, expect.objectContaining({ code: 3, message: text })]);
  });

  test("reports a rule's evaluation error only once", async () => {
    const faults: unknown[] = [];
    const onFault: OnFault = (_, what, request, errorCode) =>
      void faults.push({ what, errorCode, procedure: request?.procedure });
    await using own = await startSignup(validation, { onFault });
    for (let calls = 1; calls <= 3; calls++)
      await expect(post({ ...validAccount, divisor: calls }, {}, own)).resolves.toMatchObject([400, { code: 3 }]);
    const procedure = "/signup.v1.SignupService/Register";
    expect(faults).toEqual([
      { what: "cannot evaluate a rule of signup.v1.Account", errorCode: "ERR_RULES_VIOLATED", procedure },
    ]);
  });

  test("evaluates rules after interceptors have run", () =>
    expect(post(short, { guest: "1" })).resolves.toEqual([403, expect.objectContaining({ code: 7 })]));

  test("lists at most 20 violations", async () => {
    const [status, body] = await post({ ...validAccount, addresses: Array.from({ length: 99 }, () => ({})) });
    expect([status, body]).toMatchObject([400, { message: expect.stringMatching(/\(and 98 more\)$/) }]);
    const twenty = { length: 20 };
    expect(body).toMatchObject({ details: [{ violations: twenty }, { fieldViolations: twenty }] });
  });

  test("does not list a violation at a map key of 500 KB", async () => {
    const [status, body] = await post({ ...validAccount, labels: { ["x".repeat(500_000)]: "" } });
    expect([status, JSON.stringify(body).length]).toEqual([400, expect.toSatisfy((length) => length < 1_000)]);
    expect(body).toMatchObject({ message: expect.stringMatching(/^labels\["xxx/), details: [{}, {}] });
  });

  test("lists a violation after twenty violations at long map keys", async () => {
    const long = Array.from({ length: 20 }, (_, at) => [`${"x".repeat(500)}${at}`, ""]);
    const [, body] = await post({ ...validAccount, labels: Object.fromEntries([...long, ["y", ""]]) });
    const one = { length: 1, 0: { field: 'labels["y"]' } };
    expect(body).toMatchObject({ details: [{ violations: { length: 1 } }, { fieldViolations: one }] });
  });
});
