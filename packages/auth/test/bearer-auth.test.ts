import { Code, ConnectError, createContextValues } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";

import { createBearerAuth, type CredentialRequest, type BearerAuth } from "../src/bearer-auth.ts";
import { principalKey } from "../src/principal-context.ts";
import { credentialRefusalOf } from "../src/credential-refusal.ts";
import { digestOf, type PresentedToken, type TokenOutcome, type TokenVerifier } from "../src/token-verifier.ts";

const deleteOrder = "/orders.v1.OrderService/DeleteOrder";
const healthCheck = "/grpc.health.v1.Health/Check";
const realm = "orders";

function answer({ text }: PresentedToken): TokenOutcome {
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

const atOnce: TokenVerifier = { verify: answer };
const later: TokenVerifier = { verify: (token) => Promise.resolve(answer(token)) };
/** Returns what awaits like a promise and is no instance of this realm's: another library's, or one of node's in Jest. */
const byThenable: TokenVerifier = {
  verify: (token) => {
    const thenable: PromiseLike<TokenOutcome> = {
      // oxlint-disable-next-line unicorn/no-thenable
      then: (resolve, reject) => Promise.resolve(answer(token)).then(resolve, reject),
    };
    return Object.assign(Object.create(null), thenable);
  },
};

const options = {
  realm,
  requiredScope: (procedure: string) => (procedure === deleteOrder ? "orders:delete" : undefined),
  open: ["grpc.health.v1.Health", "/orders.v1.OrderService/Open"],
};

interface Given {
  readonly procedure?: string | undefined;
  readonly authorization?: string;
}

function toRequest(given: Given): CredentialRequest {
  const procedure = "procedure" in given ? given.procedure : deleteOrder;
  return {
    procedure,
    authorization: given.authorization ?? null,
    connection: {},
    contextValues: createContextValues(),
  };
}

async function refusedWith(admit: BearerAuth["admit"], request: CredentialRequest): Promise<ConnectError> {
  const error: unknown = await Promise.resolve()
    .then(() => admit(request))
    .then(
      () => undefined,
      (refusal: unknown) => refusal,
    );
  if (error instanceof ConnectError) return error;
  throw new Error(`expected a ConnectError, not ${String(error)}`);
}

/** A refusal for want of a valid credential, with the parameters of its challenge besides the realm. */
function unauthenticated(message: string, parameters = "") {
  return {
    code: Code.Unauthenticated,
    message,
    header: { "www-authenticate": `Bearer realm="orders"${parameters}` },
  };
}

/** The same with an error, whose description repeats the message. */
function challenged(message: string, error: string) {
  return unauthenticated(message, `, error="${error}", error_description="${message}"`);
}

const missing = unauthenticated("a bearer token is required");
const malformed = challenged("the Authorization header must contain a single bearer token", "invalid_request");
const invalid = challenged("the token is not valid", "invalid_token");

interface Refusal {
  readonly name: string;
  readonly given: Parameters<typeof toRequest>[0];
  readonly want: { readonly code: Code; readonly message: string; readonly header: Readonly<Record<string, string>> };
  readonly cause: object;
}

const refusals: readonly Refusal[] = [
  { name: "no credential earns a bare challenge", given: {}, want: missing, cause: { kind: "missing" } },
  {
    name: "another scheme earns a bare challenge",
    given: { authorization: "Basic dTpw" },
    want: missing,
    cause: { kind: "other-scheme" },
  },
  {
    name: "a malformed credential is an invalid request",
    given: { authorization: "Bearer" },
    want: malformed,
    cause: { kind: "malformed" },
  },
  {
    name: "a credential sent twice is an invalid request, even if both are good",
    given: { authorization: "Bearer good, Bearer good" },
    want: malformed,
    cause: { kind: "malformed" },
  },
  {
    name: "an unknown token is an invalid token",
    given: { authorization: "Bearer wrong" },
    want: invalid,
    cause: { kind: "invalid", reason: "no such token" },
  },
  {
    name: "a refused token is an invalid token, and why stays here",
    given: { authorization: "Bearer tampered" },
    want: invalid,
    cause: { kind: "invalid", reason: "the signature is wrong" },
  },
  {
    name: "an expired token is told so",
    given: { authorization: "Bearer expired" },
    want: challenged("the token has expired", "invalid_token"),
    cause: { kind: "expired", reason: "exp is 17" },
  },
  {
    name: "a token without the scope is told which one is wanted",
    given: { authorization: "Bearer narrow" },
    want: {
      code: Code.PermissionDenied,
      message: "the token lacks the scope orders:delete",
      header: {
        "www-authenticate":
          'Bearer realm="orders", error="insufficient_scope", error_description="the token lacks the scope orders:delete", scope="orders:delete"',
      },
    },
    cause: { kind: "insufficient-scope" },
  },
  {
    name: "a token that cannot be checked now is not called bad",
    given: { authorization: "Bearer early" },
    want: { code: Code.Unavailable, message: "the token cannot be verified right now", header: { "retry-after": "7" } },
    cause: { kind: "unavailable", reason: "no keys yet" },
  },
  {
    name: "a path that matched nothing needs a credential too",
    given: { procedure: undefined },
    want: missing,
    cause: { kind: "missing" },
  },
  {
    name: "a procedure whose name only starts like an open one is not open",
    given: { procedure: "/orders.v1.OrderService/OpenAll" },
    want: missing,
    cause: { kind: "missing" },
  },
];

describe.each([
  { verifier: atOnce, how: "at once" },
  { verifier: later, how: "by a promise" },
  { verifier: byThenable, how: "by a promise of another make" },
])("admit, with a verifier that answers $how", ({ verifier }) => {
  const { admit } = createBearerAuth(verifier, options);

  test.each(refusals)("$name", async ({ given, want, cause }) => {
    const error = await refusedWith(admit, toRequest(given));
    const { code, rawMessage: message, metadata } = error;
    expect({ code, message, header: Object.fromEntries(metadata) }).toEqual(want);
    expect(credentialRefusalOf(error)).toMatchObject(cause);
  });

  test.each([
    ["a good token", { authorization: "Bearer good" }, "ada"],
    ["a token with the scope", { authorization: "bearer wide" }, "bob"],
    ["a narrow token where no scope is demanded", { procedure: "/a.B/C", authorization: "Bearer narrow" }, "eve"],
    ["a narrow token where nothing matched", { procedure: undefined, authorization: "Bearer narrow" }, "eve"],
    ["nobody to an open service", { procedure: healthCheck }, ""],
    ["nobody to an open procedure", { procedure: "/orders.v1.OrderService/Open" }, ""],
    ["a bad token to an open service, unread", { procedure: healthCheck, authorization: "Bearer wrong" }, ""],
  ])("lets in %s", async (_, given, want) => {
    const request = toRequest(given);
    await admit(request);
    expect(request.contextValues.get(principalKey)?.subject ?? "").toBe(want);
  });

  test("remembers the caller that is refused for want of a scope, so that the log can name it", async () => {
    const request = toRequest({ authorization: "Bearer narrow" });
    await refusedWith(admit, request);
    expect(request.contextValues.get(principalKey)?.subject).toBe("eve");
  });
});

describe("admit", () => {
  test("hands the verifier the token with its SHA-256", async () => {
    const seen: PresentedToken[] = [];
    const { admit } = createBearerAuth({ verify: (token) => (seen.push(token), answer(token)) }, { realm });
    await admit(toRequest({ authorization: "Bearer good" }));
    expect(seen).toEqual([{ text: "good", digest: digestOf("good") }]);
  });

  // A longer one would be kept for as long as a connection of anybody is idle. What is kept of a head that has a short
  // one is among the costs.
  test.each([
    { chars: 4096, readings: 1 },
    { chars: 4097, readings: 2 },
  ])("reads a credential $readings times that a connection repeats: $chars characters", async ({ chars, readings }) => {
    const seen: PresentedToken[] = [];
    const verify = (token: PresentedToken): TokenOutcome => (seen.push(token), answer({ ...token, text: "good" }));
    const { admit } = createBearerAuth({ verify }, { realm });
    const connection = {};
    const authorization = `Bearer ${"t".repeat(chars)}`;
    for (const _ of [1, 2]) await admit({ ...toRequest({ authorization }), connection });
    expect(seen.map(({ text }) => text.length)).toEqual([chars, chars]);
    expect(new Set(seen).size).toBe(readings);
  });

  test.each([
    { name: "another token of the same length", authorization: "Bearer goot" },
    { name: "a longer one", authorization: "Bearer goods" },
    { name: "a malformed one", authorization: "Bearer good, Bearer good" },
    { name: "none", authorization: null },
  ])("never takes $name on the same connection for the one before", async ({ authorization }) => {
    const { admit } = createBearerAuth(atOnce, { realm });
    const request = { ...toRequest({ authorization: "Bearer good" }), connection: {} };
    await admit(request);
    expect((await refusedWith(admit, { ...request, authorization })).code).toBe(Code.Unauthenticated);
    await admit(request);
  });

  test("asks the verifier for every request of a connection: a token that went bad is refused at once", async () => {
    let isGood = true;
    const verifier: TokenVerifier = {
      verify: (token) => (isGood ? answer(token) : { kind: "invalid", reason: "revoked" }),
    };
    const { admit } = createBearerAuth(verifier, { realm });
    const request = { ...toRequest({ authorization: "Bearer good" }), connection: {} };
    await admit(request);
    isGood = false;
    expect((await refusedWith(admit, request)).code).toBe(Code.Unauthenticated);
  });

  test("makes no promise when the verifier makes none", () => {
    expect(createBearerAuth(atOnce, options).admit(toRequest({ authorization: "Bearer good" }))).toBeUndefined();
  });

  test.each(refusals.filter(({ want }) => "www-authenticate" in want.header))(
    "points to the resource metadata (RFC 9728 §5.1) where $name",
    async ({ given, want }) => {
      const { admit } = createBearerAuth(atOnce, { ...options, resourceMetadata: "https://orders.example/meta" });
      const { metadata } = await refusedWith(admit, toRequest(given));
      expect(metadata.get("www-authenticate")).toBe(
        `${want.header["www-authenticate"]}, resource_metadata="https://orders.example/meta"`,
      );
    },
  );

  test("asks for the scope of a procedure once", async () => {
    const asked: string[] = [];
    const { admit } = createBearerAuth(atOnce, {
      realm,
      requiredScope: (procedure) => (asked.push(procedure), undefined),
    });
    for (const procedure of ["/a.B/C", "/a.B/D", "/a.B/C"]) {
      await admit(toRequest({ procedure, authorization: "Bearer good" }));
    }
    expect(asked).toEqual(["/a.B/C", "/a.B/D"]);
  });

  test("fails where the scope of a procedure comes by a promise, whatever the scopes of the token", async () => {
    const given: object = { realm, requiredScope: () => Promise.reject(new Error("no policy")) };
    const { admit } = createBearerAuth(atOnce, Object.assign({ realm }, given));
    const admitted = Promise.resolve(toRequest({ authorization: "Bearer good" })).then(admit);
    await expect(admitted).rejects.toThrow("requiredScope must return its result, got a promise");
  });

  test("refuses at construction a realm that no header can carry", () => {
    expect(() => createBearerAuth(atOnce, { realm: "a\r\nb" })).toThrow(RangeError);
  });
});
