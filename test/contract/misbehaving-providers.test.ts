import { writeFileSync } from "node:fs";
import type { RequestListener, ServerResponse } from "node:http";
import { pipeline, Readable } from "node:stream";
import { gzipSync } from "node:zlib";

import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { openTokenVerifier, type TokenSources, type TokenVerifier } from "../../src/operators/auth/index.ts";
import { openMemoryStore } from "../../src/plantstore/plants/index.ts";
import {
  createSigningKey,
  type IdentityProvider,
  type SigningKey,
  startIdentityProvider,
  testAudience,
} from "../support/auth/identity-provider.ts";
import { waitLimitMs } from "../support/deadline.ts";
import { bearer, startPlantServer, type TestPlantServer } from "../support/server/plant-server.ts";
import { quietLog } from "../support/operations/quiet-log.ts";
import { createTempFolder } from "../support/process/temp-folder.ts";
import {
  type Carriage,
  carriagesOf,
  deletePlantRequest,
  exchange,
  type WireFormatName,
} from "../support/gateway/wire-format.ts";
import { expectedAnswer, type SeenAnswer, seenAnswer, type Want } from "./expected-answer.ts";

const carriages = carriagesOf("rest", "connect-json", "grpc-web", "grpc");

// A back-off below a second makes every Retry-After the same. A fetch that hangs takes so long, for all that wait for it.
const timing = { coolDownMs: 0, fetchMs: 600, backOffMs: 900, backOffMaxMs: 900 };

const ok: Want = { code: "ok" };
const invalid: Want = {
  code: "unauthenticated",
  message: "the token is not valid",
  fields: {
    "www-authenticate": 'Bearer realm="plantstore", error="invalid_token", error_description="the token is not valid"',
  },
};
const uncheckable: Want = {
  code: "unavailable",
  message: "the token cannot be checked now",
  fields: { "retry-after": "1" },
};

let key: SigningKey;

beforeAll(async () => {
  key = await createSigningKey("ES256", "first");
});

/** A plant server behind a provider; every plant that a test may want to delete is there. */
interface Behind extends AsyncDisposable {
  readonly server: TestPlantServer;
  readonly provider: IdentityProvider;
}

async function startBehind(
  sources: (provider: IdentityProvider) => TokenSources,
  onVerify: () => void = () => {},
): Promise<Behind> {
  const provider = await startIdentityProvider(key);
  const opened = await openTokenVerifier(sources(provider), quietLog);
  if (opened.kind === "problems") throw new Error(opened.problems.join("; "));
  const { value: verifier } = opened;
  // On a busy machine the first fetch of keys may take longer than a fetch may.
  await vi.waitFor(() => expect(verifier.problem).toBeUndefined(), { timeout: waitLimitMs });
  const verify: TokenVerifier["verify"] = (token) => {
    onVerify();
    return verifier.verify(token);
  };
  const plants = new Set(Array.from({ length: 100 }, (_, at) => BigInt(at)));
  const server = await startPlantServer({ auth: { verify }, store: openMemoryStore(plants) });
  return {
    server,
    provider,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      verifier.close?.();
      provider.stop();
    },
  };
}

function byKeys({ issuer, keysUrl }: IdentityProvider): TokenSources {
  return { jwt: [{ issuer, audiences: [testAudience], keys: { url: keysUrl }, timing }] };
}

/** Where no fetch hangs, none ends too soon, however busy the machine is. */
function byKeysPatiently({ issuer, keysUrl }: IdentityProvider): TokenSources {
  const patient = { ...timing, fetchMs: 10_000 };
  return { jwt: [{ issuer, audiences: [testAudience], keys: { url: keysUrl }, timing: patient }] };
}

async function call({ server }: Behind, carriage: Carriage, token: string, plant: bigint): Promise<SeenAnswer> {
  const { format, httpVersion } = carriage;
  return seenAnswer(
    format,
    await exchange(server.address, httpVersion, deletePlantRequest(format, plant, [bearer(token)])),
  );
}

const megabyte = Buffer.alloc(2 ** 20, 0x20);
const packedMegabyte = gzipSync(megabyte);

/** An answer that either kind of provider would be believed for, if it were not for what stands before it. */
function goodAnswer(): Buffer {
  return Buffer.from(JSON.stringify({ keys: [key.jwk, { ...key.jwk, kid: "other" }], active: true, sub: "ada" }));
}

function* afterWhiteSpace(white: Buffer, end: Buffer): Iterable<Buffer> {
  for (let count = 0; count < 100; count += 1) yield white;
  yield end;
}

function send(response: ServerResponse, parts: Iterable<Buffer>): void {
  // That the client hangs up is what is expected of it.
  pipeline(Readable.from(parts), response, () => {});
}

interface Misbehaviour {
  readonly name: string;
  /**
   * The format of the calls behind it. What a provider does ends where tokens are verified, before anything that differs
   * from one format to the next, so one is enough, as long as each has its turn.
   */
  readonly format: WireFormatName;
  readonly answer: RequestListener;
}

const misbehaviours: readonly Misbehaviour[] = [
  { name: "hangs", format: "rest", answer: () => {} },
  {
    name: "never ends its answer",
    format: "connect-json",
    answer: (_request, response) => void response.writeHead(200).write("{"),
  },
  {
    name: "redirects to a good answer",
    format: "grpc-web",
    answer: ({ url }, response) => {
      if (url === "/good") response.end(goodAnswer());
      else response.writeHead(307, { location: "/good" }).end();
    },
  },
  {
    name: "sends 100 MB",
    format: "grpc",
    answer: (_request, response) => send(response, afterWhiteSpace(megabyte, goodAnswer())),
  },
  {
    // RFC 1952 §2.2 lets members follow each other.
    name: "sends 100 MB in a package of 100 KB",
    format: "rest",
    answer: (_request, response) => {
      response.setHeader("content-encoding", "gzip");
      send(response, afterWhiteSpace(packedMegabyte, gzipSync(goodAnswer())));
    },
  },
  {
    name: "sends HTML",
    format: "connect-json",
    answer: (_request, response) => void response.end("<!doctype html><p>Sign in"),
  },
  { name: "fails", format: "grpc-web", answer: (_request, response) => void response.writeHead(500).end() },
  { name: "cuts the connection", format: "grpc", answer: (request) => void request.socket.destroy() },
];

describe.each(misbehaviours)("behind a provider of keys that $name", ({ format, answer }) => {
  let behind: Behind;
  let plant = 0n;

  beforeAll(async () => {
    behind = await startBehind(byKeys);
    behind.provider.answer = answer;
  });
  afterAll(() => behind[Symbol.asyncDispose]());

  test.concurrent.each(carriagesOf(format))(
    "a token by a known key is good, one by another is not called bad: $name",
    async (carriage) => {
      const { provider } = behind;
      const unknown = await call(behind, carriage, await provider.sign({}, { kid: "other" }), 0n);
      expect(unknown).toStrictEqual(expectedAnswer(carriage.format, uncheckable));
      const known = await call(behind, carriage, await provider.sign(), (plant += 1n));
      expect(known).toStrictEqual(expectedAnswer(carriage.format, ok));
    },
  );
});

describe.each(misbehaviours)("behind an introspection endpoint that $name", ({ format, answer }) => {
  const folder = createTempFolder();
  let behind: Behind;

  beforeAll(async () => {
    const clientSecretFile = folder.file("secret");
    writeFileSync(clientSecretFile, "s3cret");
    behind = await startBehind(({ issuer }) => ({
      introspection: { url: `${issuer}/introspect`, clientId: "plants", clientSecretFile, timeoutMs: timing.fetchMs },
    }));
    behind.provider.answer = answer;
  });
  afterAll(async () => {
    await behind[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  test.concurrent.each(carriagesOf(format))("a token is neither taken nor called bad: $name", async (carriage) => {
    const answered = await call(behind, carriage, `opaque-${carriage.format.name}`, 0n);
    expect(answered).toStrictEqual(expectedAnswer(carriage.format, uncheckable));
  });
});

describe("behind an introspection endpoint whose firewall refuses some tokens", () => {
  test.each(carriages)("the others are served, and the server stays ready: $name", async (carriage) => {
    using folder = createTempFolder();
    const clientSecretFile = folder.file("secret");
    writeFileSync(clientSecretFile, "s3cret");
    await using behind = await startBehind(({ issuer }) => ({
      introspection: { url: `${issuer}/introspect`, clientId: "plants", clientSecretFile },
    }));
    behind.provider.answer = (request, response) => {
      request.once("data", (form) => {
        if (String(form).includes("attack")) response.writeHead(403).end("<p>Request rejected");
        else response.end(goodAnswer());
      });
    };
    const attacks = Array.from({ length: 10 }, (_, n) => call(behind, carriage, `attack-${n}`, 0n));
    for (const answer of await Promise.all(attacks))
      expect(answer).toStrictEqual(expectedAnswer(carriage.format, uncheckable));
    expect(await call(behind, carriage, "opaque", 1n)).toStrictEqual(expectedAnswer(carriage.format, ok));
    const { address, port } = behind.server.address;
    expect((await fetch(`http://${address}:${port}/readyz`, { headers: { connection: "close" } })).status).toBe(200);
  });
});

describe("behind a provider that hangs", () => {
  test.concurrent.each(carriages)(
    "only tokens by an unknown key are held up, for as long as one fetch may take: $name",
    async (carriage) => {
      await using behind = await startBehind(byKeys);
      const { provider } = behind;
      provider.answer = () => {};
      const unknown = await Promise.all(
        Array.from({ length: 20 }, (_, n) => provider.sign({ jti: String(n) }, { kid: "other" })),
      );
      const asked = provider.nextRequest();
      const waiting = unknown.map((token) => call(behind, carriage, token, 0n));
      await asked;
      const known = await call(behind, carriage, await provider.sign(), 1n);
      expect(known).toStrictEqual(expectedAnswer(carriage.format, ok));
      const want = expectedAnswer(carriage.format, uncheckable);
      for (const answer of await Promise.all(waiting)) expect(answer).toStrictEqual(want);
    },
  );
});

describe("behind a provider that works", () => {
  test.each(carriages)("65 tokens at once by unknown keys are one fetch, and refused: $name", async (carriage) => {
    const allAsked = Promise.withResolvers<void>();
    let left = 65;
    await using behind = await startBehind(byKeysPatiently, () => {
      left -= 1;
      if (left === 0) allAsked.resolve();
    });
    const { provider } = behind;
    const document = JSON.stringify({ keys: [key.jwk] });
    provider.answer = (_request, response) => void allAsked.promise.then(() => response.end(document));
    const tokens = await Promise.all(
      Array.from({ length: left }, (_, n) => provider.sign({ jti: String(n) }, { kid: `unknown-${String(n)}` })),
    );
    const answers = tokens.map((token) => call(behind, carriage, token, 0n));
    const want = expectedAnswer(carriage.format, invalid);
    for (const answer of await Promise.all(answers)) expect(answer).toStrictEqual(want);
    expect(provider.requests).toEqual(["/keys", "/keys"]);
  });

  test.each(carriages)("no good call is refused while it changes its keys: $name", async (carriage) => {
    await using behind = await startBehind(byKeysPatiently);
    const { provider } = behind;
    const calls: Promise<SeenAnswer>[] = [];
    let plant = 0n;
    for (const keyId of ["second", "third", "fourth"]) {
      const fresh = await createSigningKey("ES256", keyId);
      // A key stays as long as its tokens are in use.
      provider.keys = [...provider.keys, fresh];
      const tokens = await Promise.all(
        Array.from({ length: 10 }, (_, n) => provider.sign({ jti: String(n) }, {}, fresh)),
      );
      calls.push(...tokens.map((token) => call(behind, carriage, token, (plant += 1n))));
    }
    const want = expectedAnswer(carriage.format, ok);
    for (const answer of await Promise.all(calls)) expect(answer).toStrictEqual(want);
  });
});
