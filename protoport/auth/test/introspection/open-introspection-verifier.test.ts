import { writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { OperatorLog } from "../../src/inputs/reload-record.ts";
import { openIntrospectionVerifier } from "../../src/introspection/open-introspection-verifier.ts";
import type { IntrospectionSource } from "../../src/introspection/open-introspection-verifier.ts";
import { digestOf, type TokenOutcome, type TokenVerifier } from "../../src/token-verifier.ts";
import { createTempFolder, quietLog, startOnLoopback, waitLimitMs, within } from "@protoport/testing";

const nowS = Math.floor(Date.now() / 1000);
type IntrospectionRequest = { method: string | undefined; header: IncomingMessage["headers"]; body: string };

interface Endpoint extends AsyncDisposable {
  readonly verifier: TokenVerifier;
  readonly requests: readonly IntrospectionRequest[];
  readonly secretFile: string;
  response: RequestListener | object;
}

/** Opens a verifier with an introspection endpoint that responds with a JSON object, or by a request handler. */
async function openEndpoint(
  response: Endpoint["response"],
  source: Partial<IntrospectionSource> = {},
  log: OperatorLog = quietLog,
): Promise<Endpoint> {
  const requests: IntrospectionRequest[] = [];
  const folder = createTempFolder();
  const secretFile = folder.write("secret", "s3cr:et\n");
  const server = createServer((request, outgoing) => {
    void text(request).then((body) => {
      requests.push({ method: request.method, header: request.headers, body });
      if (typeof endpoint.response === "function") endpoint.response(request, outgoing);
      else outgoing.end(JSON.stringify(endpoint.response));
    });
  });
  const { baseUrl, [Symbol.asyncDispose]: close } = await startOnLoopback(server);
  const opened = await openIntrospectionVerifier(
    { url: `${baseUrl}/introspect`, clientId: "order desk", clientSecretFile: secretFile, ...source },
    log,
  );
  if (opened.kind === "problems") throw new Error(opened.problems.join("; "));
  const endpoint: Endpoint = {
    verifier: opened.value,
    requests,
    secretFile,
    response,
    async [Symbol.asyncDispose]() {
      opened.value.close?.();
      await close();
      folder[Symbol.dispose]();
    },
  };
  return endpoint;
}

const verify = ({ verifier }: Endpoint, token: string): TokenOutcome | Promise<TokenOutcome> =>
  verifier.verify({ text: token, digest: digestOf(token) });
const outcomeOf = async (endpoint: Endpoint, token = "opaque-token"): Promise<TokenOutcome> =>
  await within(Promise.resolve(verify(endpoint, token)), "the outcome");

/** Mocks `performance.now()`, which a test can advance. Dispose it with `using`. */
function startClock(): Disposable & { readonly advance: (ms: number) => void } {
  const realNow = performance.now.bind(performance);
  let aheadMs = 0;
  const spy = vi.spyOn(performance, "now").mockImplementation(() => realNow() + aheadMs);
  return { advance: (ms) => void (aheadMs += ms), [Symbol.dispose]: () => spy.mockRestore() };
}

test("an introspection endpoint gets a POST form with the client credentials (RFC 7662 §2.1)", async () => {
  await using endpoint = await openEndpoint({ active: true, sub: "ada" });
  await outcomeOf(endpoint, "a+token/with~signs==");
  const [request] = endpoint.requests;
  expect(request?.method).toBe("POST");
  expect(request?.header["content-type"]).toMatch(/^application\/x-www-form-urlencoded/);
  expect(request?.header.authorization).toBe(`Basic ${Buffer.from("order+desk:s3cr%3Aet").toString("base64")}`);
  const form = { token: "a+token/with~signs==", token_type_hint: "access_token" };
  expect(Object.fromEntries(new URLSearchParams(request?.body))).toEqual(form);
});

test.each([
  ["gets the reloaded secret without the final line break", "rot\nated\r\n", "rot%0Aated"],
  ["gets the previous client secret while the secret file is empty", "\n", "s3cr%3Aet"],
])("an introspection endpoint %s", async (_name, secret, want) => {
  await using endpoint = await openEndpoint({ active: true, sub: "ada" });
  writeFileSync(endpoint.secretFile, secret);
  await endpoint.verifier.reload?.();
  await outcomeOf(endpoint);
  expect(endpoint.requests[0]?.header.authorization).toBe(`Basic ${btoa(`order+desk:${want}`)}`);
});

test.each([
  { name: "an active token", response: { active: true, sub: "ada", exp: nowS + 600 } },
  { name: "an inactive token", response: { active: false } },
])("an introspection endpoint gets $name only once", async ({ response }) => {
  await using endpoint = await openEndpoint(response);
  await Promise.all([outcomeOf(endpoint), outcomeOf(endpoint)]);
  await outcomeOf(endpoint);
  expect(endpoint.requests).toHaveLength(1);
  expect(verify(endpoint, "opaque-token")).not.toBeInstanceOf(Promise);
});

test.each([
  { name: "an expired token within the clock skew", response: { active: true, sub: "ada", exp: nowS - 5 } },
  { name: "a token with rejected claims", response: { active: true, sub: "ada", cnf: {} } },
])("an introspection endpoint gets $name at each use", async ({ response }) => {
  await using endpoint = await openEndpoint(response);
  await outcomeOf(endpoint, "first");
  expect(verify(endpoint, "first")).toBeInstanceOf(Promise);
});

test.each<[name: string, response: object, want: object, source?: Partial<IntrospectionSource>]>(
  // oxfmt-ignore
  [
    ["has every scope without enforceScopes", { sub: "ada", scope: "a" }, { subject: "ada", scopes: "all" }],
    ["has only the response's scopes with enforceScopes", { sub: "ada", scope: "a b" },
      { scopes: new Set(["a", "b"]) }, { enforceScopes: true }],
    ["has the response's issuer", { sub: "ada", iss: "https://id.example" }, { issuer: "https://id.example" }],
    ["has the endpoint as issuer if the response has none", { sub: "ada" },
      { issuer: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/) }],
    ["is accepted if one of its audiences is configured", { sub: "ada", aud: ["x", "orders"] }, { subject: "ada" },
      { audiences: ["orders"] }],
    ["is accepted for any configured audience", { sub: "ada", aud: "orders" }, { subject: "ada" },
      { audiences: ["gardens", "orders"] }],
  ],
)("an active token %s", async (_, response, want, source) => {
  await using endpoint = await openEndpoint({ active: true, ...response }, source);
  expect(await outcomeOf(endpoint)).toMatchObject({ kind: "principal", ...want });
});

test.each<{ name: string; response: object; source?: Partial<IntrospectionSource> }>([
  { name: "has no subject", response: { sub: undefined } },
  { name: "has a subject that is too long", response: { sub: "s".repeat(256) } },
  { name: "is for another audience", response: { aud: "other" }, source: { audiences: ["orders"] } },
  { name: "lacks the required audience", response: {}, source: { audiences: ["orders"] } },
  { name: "is bound to a key", response: { cnf: { jkt: "x" } } },
  { name: "is a DPoP token", response: { token_type: "DPOP" } },
  { name: "has a string for exp", response: { exp: "2099" } },
])("an active token that $name is rejected", async ({ response, source }) => {
  await using endpoint = await openEndpoint({ active: true, sub: "ada", ...response }, source);
  expect(await outcomeOf(endpoint)).toMatchObject({ kind: "invalid" });
});

test.each([
  ["that expired 29 s ago", "principal", { exp: nowS - 29 }],
  ["that expired 30 s ago", "expired", { exp: nowS - 30 }],
  ["valid in 30 s", "principal", { nbf: nowS + 30 }],
  ["valid in 31 s", "invalid", { nbf: nowS + 31 }],
])("an active token %s has the outcome %s", async (_name, kind, response) => {
  vi.useFakeTimers({ toFake: ["Date"], now: nowS * 1000 });
  onTestFinished(() => void vi.useRealTimers());
  await using endpoint = await openEndpoint({ active: true, sub: "ada", ...response });
  expect((await outcomeOf(endpoint)).kind).toBe(kind);
});

describe("a failing introspection endpoint", () => {
  // Concurrent, because two tests wait for a response that never arrives.
  test.concurrent.each<[name: string, response: Endpoint["response"], want: RegExp, isAboutToken?: boolean]>(
    // oxfmt-ignore
    [
      ["responds with status 500", (_request, response) => void response.writeHead(500).end(),
        /responded with status 500$/],
      ["responds with status 429", (_request, response) => void response.writeHead(429).end(), /429$/],
      ["rejects the client's credentials", (_request, response) => void response.writeHead(401).end(),
        /responded with status 401$/],
      ["is behind a firewall that rejects the token", (_request, response) => void response.writeHead(403).end(),
        /responded with status 403$/, true],
      ["responds with HTML", (_request, response) => void response.end("<p>Request rejected"), /is not valid JSON$/,
        true],
      ["never responds", () => {}, /timeout/i],
      ['responds without the member "active"', { sub: "ada" }, /has no boolean "active"/, true],
      ['responds with a string for "active"', { active: "false" }, /has no boolean "active"/, true],
    ],
  )("that %s makes every token unavailable", async (_, response, want, isAboutToken = false) => {
    const warnings: object[] = [];
    // Long enough for a response on a busy machine. The endpoint that never responds takes one second.
    const source = { timeoutMs: want.source === "timeout" ? 1000 : waitLimitMs };
    const log = { info: () => {}, warn: (fields: object) => warnings.push(fields) };
    await using endpoint = await openEndpoint(response, source, log);
    const names = ["one", "two", "three", "four", "five"];
    const outcomes = await Promise.all(names.map((name) => outcomeOf(endpoint, `opaque-token-${name}`)));
    const reason = expect.stringMatching(want);
    expect(outcomes).toEqual(names.map(() => ({ kind: "unavailable", reason, retryAfterS: 1 })));
    const [url, problem] = [expect.stringMatching(/\/introspect$/), expect.stringMatching(want)];
    const warning = { errorCode: "ERR_INTROSPECTION_UNAVAILABLE", endpoint: url, problem };
    expect(warnings).toEqual(isAboutToken ? [] : [warning]);
    expect(JSON.stringify(warnings)).not.toContain("opaque-token");
    // After the endpoint has failed for five tokens, no other token is sent to it.
    expect(endpoint.verifier.problem).toEqual(isAboutToken ? undefined : reason);
    endpoint.response = { active: true, sub: "ada" };
    expect(await outcomeOf(endpoint, "six")).toMatchObject({ kind: isAboutToken ? "principal" : "unavailable" });
    expect(endpoint.requests.filter(({ body }) => body.includes("six"))).toHaveLength(isAboutToken ? 1 : 0);
  });

  test("is not reported as a problem after four failed tokens", async () => {
    const reported: unknown[] = [];
    const log = { info: (...line: unknown[]) => void reported.push(line), warn: () => {} };
    await using endpoint = await openEndpoint((_request, response) => void response.writeHead(500).end(), {}, log);
    for (const token of ["one", "two", "three", "four"]) await outcomeOf(endpoint, token);
    expect(endpoint.verifier.problem).toBeUndefined();
    endpoint.response = { active: true, sub: "ada" };
    for (const token of ["five", "six"]) expect(await outcomeOf(endpoint, token)).toMatchObject({ kind: "principal" });
    expect(reported).toEqual([[{ endpoint: expect.stringMatching(/\/introspect$/) }, "token introspection recovered"]]);
  });

  test("is reported after five failed tokens until a pending request succeeds", async () => {
    const firstRequest = Promise.withResolvers<ServerResponse>();
    await using endpoint = await openEndpoint((_request, response) => firstRequest.resolve(response));
    const first = outcomeOf(endpoint, "first");
    const response = await within(firstRequest.promise, "the first request");
    endpoint.response = (_request, failed) => void failed.writeHead(500).end();
    for (const token of ["one", "two", "three", "four", "five"]) await outcomeOf(endpoint, token);
    expect(endpoint.verifier.problem).toBeDefined();
    endpoint.response = { active: true, sub: "ada" };
    response.end(JSON.stringify(endpoint.response));
    expect(await first).toMatchObject({ kind: "principal" });
    expect(endpoint.verifier.problem).toBeUndefined();
    expect(await outcomeOf(endpoint, "six")).toMatchObject({ kind: "principal" });
  });

  test("gets requests after the pause, even after another failure", async () => {
    await using endpoint = await openEndpoint((_request, response) => void response.writeHead(500).end());
    for (const token of ["one", "two", "three", "four", "five"]) await outcomeOf(endpoint, token);
    using clock = startClock();
    clock.advance(1_000);
    await outcomeOf(endpoint, "six");
    endpoint.response = { active: true, sub: "ada" };
    expect(await outcomeOf(endpoint, "seven")).toMatchObject({ kind: "principal" });
  });

  test("is logged at the start and end of each outage", async () => {
    const messages: string[] = [];
    const record = (_fields: object, message: string): void => void messages.push(message);
    await using endpoint = await openEndpoint({}, {}, { info: record, warn: record });
    using clock = startClock();
    for (const outage of [1, 2]) {
      endpoint.response = (_request, response) => void response.writeHead(500).end();
      for (let n = 0; n < 5; n += 1) {
        expect(endpoint.verifier.problem).toBeUndefined();
        await outcomeOf(endpoint, `token-${outage}-${n}`);
      }
      expect(endpoint.verifier.problem).toMatch(/responded with status 500$/);
      endpoint.response = { active: true, sub: "ada" };
      expect(await outcomeOf(endpoint, `early-${outage}`)).toMatchObject({ kind: "unavailable" });
      clock.advance(1_000);
      expect(await outcomeOf(endpoint, `late-${outage}`)).toMatchObject({ kind: "principal" });
      expect(endpoint.verifier.problem).toBeUndefined();
    }
    const failed = "cannot introspect tokens";
    const recovered = "token introspection recovered";
    expect(messages).toEqual([failed, recovered, failed, recovered]);
  });

  test("gets requests after the pause even if the clock is set back", async () => {
    await using endpoint = await openEndpoint((_request, response) => void response.writeHead(500).end());
    for (const token of ["one", "two", "three", "four", "five"]) await outcomeOf(endpoint, token);
    using clock = startClock();
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - 3_600_000 });
    try {
      clock.advance(1_000);
      endpoint.response = { active: true, sub: "ada" };
      for (const token of ["six", "one"]) expect(await outcomeOf(endpoint, token)).toMatchObject({ kind: "principal" });
    } finally {
      vi.useRealTimers();
    }
  });

  test("is not reported if fewer than five tokens fail in a row", async () => {
    await using endpoint = await openEndpoint({});
    for (let round = 0; round < 4; round += 1) {
      endpoint.response = (_request, response) => void response.writeHead(500).end();
      for (let n = 0; n < 4; n += 1) await outcomeOf(endpoint, `bad-${round}-${n}`);
      endpoint.response = { active: true, sub: "ada" };
      expect(await outcomeOf(endpoint, `good-${round}`)).toMatchObject({ kind: "principal" });
    }
    expect(endpoint.verifier.problem).toBeUndefined();
  });

  test("gets no second request for a token that has just failed", async () => {
    await using endpoint = await openEndpoint((_request, response) => void response.writeHead(403).end());
    await outcomeOf(endpoint, "one");
    expect(verify(endpoint, "one")).toMatchObject({ kind: "unavailable" });
    expect(endpoint.requests).toHaveLength(1);
  });

  test("makes further tokens unavailable while 64 requests are open", async () => {
    await using endpoint = await openEndpoint({ active: true, sub: "ada" }, { timeoutMs: 4 * waitLimitMs });
    for (const token of ["one", "two"]) await outcomeOf(endpoint, token);
    endpoint.response = () => {};
    const pending = Array.from({ length: 64 }, (_, n) => outcomeOf(endpoint, `token-${n}`));
    const reason = expect.stringContaining("64 introspection requests");
    expect(await outcomeOf(endpoint, "one-more")).toMatchObject({ kind: "unavailable", reason });
    endpoint.verifier.close?.();
    const outcomes = await Promise.all(pending);
    expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(["unavailable"]));
    expect(JSON.stringify(outcomes)).not.toContain("64 introspection requests");
  });
});

test("the in-flight limit does not apply to consecutive requests", async () => {
  const messages: string[] = [];
  const log = { info: (_fields: object, message: string) => messages.push(message), warn: () => {} };
  await using endpoint = await openEndpoint({ active: true, sub: "ada" }, {}, log);
  for (let n = 0; n < 70; n += 1) expect(await outcomeOf(endpoint, `token-${n}`)).toMatchObject({ kind: "principal" });
  expect(messages).toEqual([]);
});

test.each([
  { name: "an endpoint over plain HTTP", source: { url: "http://id.example/introspect" }, want: /must use https/ },
  { name: "a missing client id", source: { clientId: "" }, want: /requires a client id/ },
  { name: "a missing secret file", source: { clientSecretFile: "/nowhere/secret" }, want: /does not exist$/ },
  { name: "a secret in a device", source: { clientSecretFile: "/dev/null" }, want: /is not a regular file/ },
  { name: "an empty secret", secret: "\n", want: /: the secret is empty$/ },
  { name: "a secret file that is too large", secret: "x".repeat(4097), want: /is larger than 4096 bytes$/ },
])("openIntrospectionVerifier reports $name as a problem", async ({ source = {}, secret = "x".repeat(4096), want }) => {
  using folder = createTempFolder();
  const clientSecretFile = folder.write("secret", secret);
  const complete = { url: "https://id.example/introspect", clientId: "orders", clientSecretFile, ...source };
  const result = await openIntrospectionVerifier(complete, quietLog);
  expect(result).toEqual({ kind: "problems", problems: [expect.stringMatching(want)] });
});

const invalid = (name: string) => ({ kind: "invalid", reason: `"${name}" must be a string of 1 to 255 characters` });

test.each<[name: string, members: object, want: object, subjectClaim?: string]>([
  ["identifies the caller if sub is missing", { client_id: "batch" }, { kind: "principal", subject: "batch" }],
  ["is ignored if sub is present", { sub: "ada", client_id: "batch" }, { kind: "principal", subject: "ada" }],
  ["does not replace an invalid sub", { sub: "", client_id: "batch" }, invalid("sub")],
  ["is required if sub is missing", {}, invalid("client_id")],
  ["is rejected if its value exceeds 255 characters", { client_id: "c".repeat(256) }, invalid("client_id")],
  ["does not accept an inherited property", { client_id: "batch" }, invalid("constructor"), "constructor"],
])("subjectClaim %s", async (_name, members, want, subjectClaim = "client_id") => {
  await using endpoint = await openEndpoint({ active: true, ...members }, { subjectClaim });
  expect(await outcomeOf(endpoint)).toMatchObject(want);
});

test("subjectClaim is off by default, so that a token without sub is rejected", async () => {
  await using endpoint = await openEndpoint({ active: true, client_id: "batch" });
  const reason = 'the response has no "sub", and no other claim is configured';
  expect(await outcomeOf(endpoint)).toEqual({ kind: "invalid", reason });
});
