import { createServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import type { Server } from "node:net";

import {
  Code,
  ConnectError,
  createClient,
  createContextValues,
  type Client,
  type ContextValues,
} from "@connectrpc/connect";
import { connectNodeAdapter, createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { createBearerAuth, type BearerAuth } from "../../src/auth/bearer-auth.ts";
import { principalKey } from "../../src/auth/principal-context.ts";
import { PlantService } from "../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import { listenOnLoopback } from "../support/carriers/listen-on-loopback.ts";
import { testVerifier, tokens } from "../support/server/plant-server.ts";

// The interceptor of `createBearerAuth`, by itself and behind its `admit`.

const options = { realm: "plantstore", requiredScope: () => "plants:delete" };
const invalidChallenge = 'Bearer realm="plantstore", error="invalid_token", error_description="the token is not valid"';

describe("the interceptor alone, under plain connect-node", () => {
  const handled: { subject: string; id: bigint | undefined }[] = [];
  const { interceptor } = createBearerAuth(testVerifier, options);
  const handler = connectNodeAdapter({
    interceptors: [interceptor],
    routes: (router) =>
      router.service(PlantService, {
        deletePlant({ id }, { values }) {
          handled.push({ subject: values.get(principalKey)?.subject ?? "", id });
          return {};
        },
      }),
  });
  const servers: Server[] = [createServer(handler), createHttp2Server(handler)];
  const clients: Record<string, Client<typeof PlantService>> = {};

  beforeAll(async () => {
    const [http1 = "", http2 = ""] = await Promise.all(servers.map(listenOnLoopback));
    clients["Connect over HTTP/1.1"] = createClient(
      PlantService,
      createConnectTransport({ baseUrl: http1, httpVersion: "1.1" }),
    );
    clients["gRPC over HTTP/2"] = createClient(
      PlantService,
      createGrpcTransport({ baseUrl: http2, idleConnectionTimeoutMs: 1 }),
    );
  });

  afterAll(() => {
    for (const server of servers) server.close();
  });

  test.each(["Connect over HTTP/1.1", "gRPC over HTTP/2"])(
    "lets a good token through to the handler: %s",
    async (protocol) => {
      handled.length = 0;
      await clients[protocol]?.deletePlant({ id: 7n }, { headers: { authorization: `Bearer ${tokens.good}` } });
      expect(handled).toEqual([{ subject: "alice", id: 7n }]);
    },
  );

  test.each([
    {
      protocol: "Connect over HTTP/1.1",
      authorization: undefined,
      code: Code.Unauthenticated,
      challenge: `Bearer realm="plantstore"`,
    },
    {
      protocol: "Connect over HTTP/1.1",
      authorization: `Bearer ${tokens.unknown}`,
      code: Code.Unauthenticated,
      challenge: invalidChallenge,
    },
    {
      protocol: "gRPC over HTTP/2",
      authorization: undefined,
      code: Code.Unauthenticated,
      challenge: `Bearer realm="plantstore"`,
    },
    {
      protocol: "gRPC over HTTP/2",
      authorization: `Bearer ${tokens.unknown}`,
      code: Code.Unauthenticated,
      challenge: invalidChallenge,
    },
    {
      protocol: "gRPC over HTTP/2",
      authorization: `Bearer ${tokens.narrow}`,
      code: Code.PermissionDenied,
      challenge: /error="insufficient_scope"/,
    },
  ])(
    "refuses $authorization over $protocol with code $code before the handler",
    async ({ protocol, authorization, code, challenge }) => {
      handled.length = 0;
      const headers = authorization === undefined ? {} : { authorization };
      const error: unknown = await clients[protocol]
        ?.deletePlant({ id: 7n }, { headers })
        .catch((refusal: unknown) => refusal);
      if (!(error instanceof ConnectError)) throw new Error("the call was not refused");
      expect(error.code).toBe(code);
      expect(error.metadata.get("www-authenticate")).toMatch(challenge);
      expect(handled).toEqual([]);
    },
  );
});

describe("the interceptor alone", () => {
  test("waits for a verifier that has to ask", async () => {
    const auth = createBearerAuth(
      { verify: async (token) => await Promise.resolve(testVerifier.verify(token)) },
      options,
    );
    const refused: unknown = await callThrough(auth, createContextValues()).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: Code.Unauthenticated });
    expect(await callThrough(auth, createContextValues(), tokens.good)).toBe("alice");
    const unknown = await callThrough(auth, createContextValues(), tokens.unknown).catch((error: unknown) => error);
    expect(unknown).toMatchObject({ code: Code.Unauthenticated });
  });

  test.each([PlantService.typeName, `/${PlantService.typeName}/DeletePlant`])(
    "leaves %s open when told to",
    async (name) => {
      const auth = createBearerAuth(testVerifier, { ...options, open: [name] });
      expect(await callThrough(auth, createContextValues())).toBe("");
    },
  );
});

describe("the interceptor after admit", () => {
  test("takes the principal that is there, and asks the verifier no second time", async () => {
    let asked = 0;
    const auth = createBearerAuth({ verify: (token) => ((asked += 1), testVerifier.verify(token)) }, options);
    const contextValues = createContextValues();
    const authorization = `Bearer ${tokens.good}`;
    await auth.admit({ procedure: `/${PlantService.typeName}/DeletePlant`, authorization, contextValues });
    const subject = await callThrough(auth, contextValues);
    expect({ asked, subject }).toEqual({ asked: 1, subject: "alice" });
  });
});

/** Runs a call through the interceptor, with a token or without, and returns the subject that its handler saw. */
async function callThrough({ interceptor }: BearerAuth, contextValues: ContextValues, token?: string): Promise<string> {
  let subject = "nobody";
  const server = createServer(
    connectNodeAdapter({
      interceptors: [interceptor],
      contextValues: () => contextValues,
      routes: (router) =>
        router.service(PlantService, {
          deletePlant(_request, { values }) {
            subject = values.get(principalKey)?.subject ?? "";
            return {};
          },
        }),
    }),
  );
  const baseUrl = await listenOnLoopback(server);
  const client = createClient(PlantService, createConnectTransport({ baseUrl, httpVersion: "1.1" }));
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  await client.deletePlant({ id: 1n }, { headers }).finally(() => server.close());
  return subject;
}
