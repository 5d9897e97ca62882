import { Code, ConnectError, createContextValues } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { Health } from "../../gateway/src/health/index.ts";
import { errorCodeOf } from "../../gateway/src/index.ts";
import { LibraryService } from "../../testing/src/gen/library/v1/library_pb.ts";
import { OrderService } from "../../testing/src/gen/orders/v1/orders_pb.ts";
import { createBearerAuth, type CredentialRequest, type BearerAuth } from "../src/bearer-auth.ts";
import { digestOf, principalKey } from "../src/token-verifier.ts";
import type { PresentedToken, TokenOutcome, TokenVerifier } from "../src/token-verifier.ts";
import { credentialRefusalOf } from "../src/credential-refusal.ts";

const deleteOrder = "/orders.v1.OrderService/DeleteOrder";
const healthCheck = "/grpc.health.v1.Health/Check";
const realm = "orders";

function outcomeOf({ text }: PresentedToken): TokenOutcome {
  if (text === "good") return { kind: "principal", subject: "ada", issuer: "https://id.example", scopes: "all" };
  if (text === "wide")
    return { kind: "principal", subject: "bob", issuer: undefined, scopes: new Set(["orders:delete"]) };
  if (text === "narrow")
    return { kind: "principal", subject: "eve", issuer: undefined, scopes: new Set(["orders:read"]) };
  if (text === "expired") return { kind: "expired", reason: "exp is 17" };
  if (text === "tampered") return { kind: "invalid", reason: "the signature is wrong" };
  if (text === "early") return { kind: "unavailable", reason: "no keys yet", retryAfterS: 7 };
  return { kind: "unknown", reason: "no such token" };
}

const synchronous: TokenVerifier = { verify: outcomeOf };
const asynchronous: TokenVerifier = { verify: (token) => Promise.resolve(outcomeOf(token)) };
/**
 * Returns a thenable that is not an instance of this realm's Promise, as from another library, or from node in Jest.
 */
const byThenable: TokenVerifier = {
  verify: (token) => {
    const thenable: PromiseLike<TokenOutcome> = {
      // oxlint-disable-next-line unicorn/no-thenable
      then: (resolve, reject) => Promise.resolve(outcomeOf(token)).then(resolve, reject),
    };
    return Object.assign(Object.create(null), thenable);
  },
};

const options = {
  realm,
  requiredScope: (procedure: string) => (procedure === deleteOrder ? "orders:delete" : undefined),
  open: ["grpc.health.v1.Health", "/orders.v1.OrderService/Open"],
};

type Given = { readonly procedure?: string | undefined; readonly authorization?: string };

const toRequest = (given: Given): CredentialRequest => ({
  procedure: "procedure" in given ? given.procedure : deleteOrder,
  authorization: given.authorization ?? null,
  connection: {},
  contextValues: createContextValues(),
});

async function refusedWith(admit: BearerAuth["admit"], request: CredentialRequest): Promise<ConnectError> {
  const error: unknown = await (async () => await admit(request))().catch((refusal: unknown) => refusal);
  if (error instanceof ConnectError) return error;
  throw new Error(`expected a ConnectError, not ${String(error)}`);
}

/** Returns an UNAUTHENTICATED refusal. `parameters` follow the realm in the challenge. */
const unauthenticated = (errorCode: string, message: string, parameters = "") => ({
  code: Code.Unauthenticated,
  errorCode,
  message,
  header: { "www-authenticate": `Bearer realm="orders"${parameters}` },
});

const challenged = (errorCode: string, message: string, error: string) =>
  unauthenticated(errorCode, message, `, error="${error}", error_description="${message}"`);

const missing = unauthenticated("ERR_CREDENTIAL_MISSING", "a bearer token is required");
const single = "the Authorization header must contain a single bearer token";
const malformed = challenged("ERR_CREDENTIAL_MALFORMED", single, "invalid_request");
const invalid = challenged("ERR_TOKEN_INVALID", "the token is not valid", "invalid_token");

interface Refusal {
  readonly name: string;
  readonly given: Parameters<typeof toRequest>[0];
  readonly want: { code: Code; errorCode: string; message: string; header: Readonly<Record<string, string>> };
  readonly cause: object;
}

// oxfmt-ignore
const refusals: readonly Refusal[] = [
  { name: "a request without a credential", given: {}, want: missing, cause: { kind: "missing" } },
  { name: "a credential of another scheme", given: { authorization: "Basic dTpw" }, want: missing,
    cause: { kind: "other-scheme" } },
  { name: "a malformed credential", given: { authorization: "Bearer" }, want: malformed, cause: { kind: "malformed" } },
  { name: "two valid tokens in one Authorization field", given: { authorization: "Bearer good, Bearer good" },
    want: malformed, cause: { kind: "malformed" } },
  { name: "an unknown token", given: { authorization: "Bearer wrong" }, want: invalid,
    cause: { kind: "invalid", reason: "no such token" } },
  { name: "a rejected token", given: { authorization: "Bearer tampered" }, want: invalid,
    cause: { kind: "invalid", reason: "the signature is wrong" } },
  { name: "an expired token", given: { authorization: "Bearer expired" },
    want: challenged("ERR_TOKEN_EXPIRED", "the token has expired", "invalid_token"),
    cause: { kind: "expired", reason: "exp is 17" } },
  { name: "a token without the required scope", given: { authorization: "Bearer narrow" },
    want: { code: Code.PermissionDenied, errorCode: "ERR_SCOPE_INSUFFICIENT",
      message: "the token lacks the scope orders:delete",
      header: { "www-authenticate": 'Bearer realm="orders", error="insufficient_scope", error_description="the token lacks the scope orders:delete", scope="orders:delete"' } },
    cause: { kind: "insufficient-scope" } },
  { name: "a token that cannot be verified right now", given: { authorization: "Bearer early" },
    want: { code: Code.Unavailable, errorCode: "ERR_VERIFICATION_UNAVAILABLE",
      message: "the token cannot be verified right now", header: { "retry-after": "7" } },
    cause: { kind: "unavailable", reason: "no keys yet" } },
  { name: "an anonymous call to an unknown path", given: { procedure: undefined }, want: missing,
    cause: { kind: "missing" } },
  { name: "an anonymous call to an RPC named like an open one", given: { procedure: "/orders.v1.OrderService/OpenAll" },
    want: missing, cause: { kind: "missing" } },
];

describe.each([
  { verifier: synchronous, how: "synchronously" },
  { verifier: asynchronous, how: "with a promise" },
  { verifier: byThenable, how: "with another library's thenable" },
])("admit with a verifier that responds $how", ({ verifier }) => {
  const { admit } = createBearerAuth(verifier, options);

  test.each(refusals)("refuses $name and reports the cause", async ({ given, want, cause }) => {
    const error = await refusedWith(admit, toRequest(given));
    const { code, rawMessage: message, metadata } = error;
    expect({ code, errorCode: errorCodeOf(error), message, header: Object.fromEntries(metadata) }).toEqual(want);
    expect(credentialRefusalOf(error)).toMatchObject(cause);
  });

  test.each(
    // oxfmt-ignore
    [
      ["a valid token", { authorization: "Bearer good" }, "ada"],
      ["a token with the scope", { authorization: "bearer wide" }, "bob"],
      ["a token without scopes for a procedure that requires none",
        { procedure: "/a.B/C", authorization: "Bearer narrow" }, "eve"],
      ["a token without scopes for an unknown path", { procedure: undefined, authorization: "Bearer narrow" }, "eve"],
      ["a request without credentials to an open service", { procedure: healthCheck }, ""],
      ["a request without credentials to an open procedure", { procedure: "/orders.v1.OrderService/Open" }, ""],
      ["an invalid token to an open service, without verifying it",
        { procedure: healthCheck, authorization: "Bearer wrong" }, ""],
    ],
  )("admits %s", async (_, given, want) => {
    const request = toRequest(given);
    await admit(request);
    expect(request.contextValues.get(principalKey)?.subject ?? "").toBe(want);
  });

  test("stores the principal even if a required scope is missing", async () => {
    const request = toRequest({ authorization: "Bearer narrow" });
    await refusedWith(admit, request);
    expect(request.contextValues.get(principalKey)?.subject).toBe("eve");
  });
});

test.each([
  ["no requirement for an open service", Health.method.check, []],
  ["the required scope of an RPC", OrderService.method.deleteOrder, [{ oauth: ["orders:delete"] }]],
  ["a requirement without scopes for an RPC that requires none", LibraryService.method.getBook, [{ oauth: [] }]],
])("describeSecurity returns %s", (_name, method, want) => {
  expect(createBearerAuth(synchronous, options).describeSecurity("oauth")(method)).toEqual(want);
});

describe("createBearerAuth", () => {
  test("passes the token and its SHA-256 to the verifier", async () => {
    const presented: PresentedToken[] = [];
    const { admit } = createBearerAuth({ verify: (token) => (presented.push(token), outcomeOf(token)) }, { realm });
    await admit(toRequest({ authorization: "Bearer good" }));
    expect(presented).toEqual([{ text: "good", digest: digestOf("good") }]);
  });

  // A longer token must not stay in memory while a connection is idle.
  test.each([
    { name: "once", chars: 4096, readings: 1 },
    { name: "twice", chars: 4097, readings: 2 },
  ])("parses a repeated credential of $chars characters $name per connection", async ({ chars, readings }) => {
    const presented: PresentedToken[] = [];
    const verify = (token: PresentedToken) => (presented.push(token), outcomeOf({ ...token, text: "good" }));
    const { admit } = createBearerAuth({ verify }, { realm });
    const connection = {};
    const authorization = `Bearer ${"t".repeat(chars)}`;
    for (const _ of [1, 2]) await admit({ ...toRequest({ authorization }), connection });
    expect(presented.map(({ text }) => text.length)).toEqual([chars, chars]);
    expect(new Set(presented).size).toBe(readings);
  });

  test("hides a connection's credential from hooks, and from other connections", async () => {
    const { admit } = createBearerAuth(synchronous, { realm });
    const [connection, other] = [{}, Object.freeze({})];
    const request = toRequest({ authorization: "Bearer good" });
    for (const each of [connection, other]) await admit({ ...request, connection: each });
    for (const each of [connection, other]) expect(Reflect.ownKeys(each)).toEqual([]);
    const refused = await refusedWith(admit, { ...request, connection: other, authorization: "Bearer goot" });
    expect(refused.code).toBe(Code.Unauthenticated);
    await admit({ ...request, connection });
  });

  test.each([
    { name: "another token of the same length", authorization: "Bearer goot" },
    { name: "a longer token", authorization: "Bearer goods" },
    { name: "a malformed credential", authorization: "Bearer good, Bearer good" },
    { name: "a request without a credential", authorization: null },
  ])("refuses $name after a valid token on the same connection", async ({ authorization }) => {
    const { admit } = createBearerAuth(synchronous, { realm });
    const request = { ...toRequest({ authorization: "Bearer good" }), connection: {} };
    await admit(request);
    expect((await refusedWith(admit, { ...request, authorization })).code).toBe(Code.Unauthenticated);
    await admit(request);
  });

  test("refuses a revoked token at the next request on the same connection", async () => {
    let isValid = true;
    const verifier: TokenVerifier = {
      verify: (token) => (isValid ? outcomeOf(token) : { kind: "invalid", reason: "revoked" }),
    };
    const { admit } = createBearerAuth(verifier, { realm });
    const request = { ...toRequest({ authorization: "Bearer good" }), connection: {} };
    await admit(request);
    isValid = false;
    expect((await refusedWith(admit, request)).code).toBe(Code.Unauthenticated);
  });

  test("admits a request synchronously if the verifier is synchronous", () =>
    expect(createBearerAuth(synchronous, options).admit(toRequest({ authorization: "Bearer good" }))).toBeUndefined());

  test.each(refusals.filter(({ want }) => "www-authenticate" in want.header))(
    "for $name, adds resource_metadata to the challenge (RFC 9728 §5.1)",
    async ({ given, want }) => {
      const { admit } = createBearerAuth(synchronous, { ...options, resourceMetadata: "https://orders.example/meta" });
      const { metadata } = await refusedWith(admit, toRequest(given));
      expect(metadata.get("www-authenticate")).toBe(
        `${want.header["www-authenticate"]}, resource_metadata="https://orders.example/meta"`,
      );
    },
  );

  test("calls requiredScope once per procedure", async () => {
    const procedures: string[] = [];
    const requiredScope = (procedure: string): undefined => void procedures.push(procedure);
    const { admit } = createBearerAuth(synchronous, { realm, requiredScope });
    for (const procedure of ["/a.B/C", "/a.B/D", "/a.B/C"])
      await admit(toRequest({ procedure, authorization: "Bearer good" }));
    expect(procedures).toEqual(["/a.B/C", "/a.B/D"]);
  });

  test("requires all scopes of an array", async () => {
    const { admit, describeSecurity } = createBearerAuth(
      { verify: () => ({ kind: "principal", subject: "ada", issuer: undefined, scopes: new Set(["a"]) }) },
      { realm, requiredScope: (procedure) => (procedure === deleteOrder ? ["a", "b"] : ["a"]) },
    );
    const { metadata } = await refusedWith(admit, toRequest({ authorization: "Bearer good" }));
    expect(metadata.get("www-authenticate")).toContain('scope="a b"');
    await admit(toRequest({ procedure: "/a.B/D", authorization: "Bearer good" }));
    const { deleteOrder: method } = OrderService.method;
    expect(describeSecurity("oauth")(method)).toEqual([{ oauth: ["a", "b"] }]);
  });

  test("fails calls if requiredScope returns a promise", async () => {
    const given: object = { realm, requiredScope: () => Promise.reject(new Error("no policy")) };
    const { admit } = createBearerAuth(synchronous, Object.assign({ realm }, given));
    const admitted = Promise.resolve(toRequest({ authorization: "Bearer good" })).then(admit);
    await expect(admitted).rejects.toThrow("requiredScope must be synchronous, got a promise");
  });

  test("rejects a realm with a line break", () =>
    expect(() => createBearerAuth(synchronous, { realm: "a\r\nb" })).toThrow(RangeError));
});
