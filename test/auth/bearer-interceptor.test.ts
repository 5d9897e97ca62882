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

import { bearerAuth, type BearerAuth } from "../../src/auth/bearer-auth.ts";
import { subjectOf } from "../../src/auth/principal-context.ts";
import { PlantService } from "../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import { listenOnLoopback } from "../support/listen-on-loopback.ts";
import { testVerifier, tokens } from "../support/plant-server.ts";

// The interceptor of `bearerAuth`, by itself and behind its `admit`.

const options = { realm: "plantstore", requiredScope: () => "plants:delete" };
const invalidChallenge = 'Bearer realm="plantstore", error="invalid_token", error_description="the token is not valid"';

describe("the interceptor alone, under plain connect-node", () => {
  const handled: { subject: string; id: bigint | undefined }[] = [];
  const { interceptor } = bearerAuth(testVerifier, options);
  const handler = connectNodeAdapter({
    interceptors: [interceptor],
    routes: (router) =>
      router.service(PlantService, {
        deletePlant({ id }, { values }) {
          handled.push({ subject: subjectOf(values), id });
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

describe("the interceptor after admit", () => {
  test("takes the principal that is there, and asks the verifier no second time", async () => {
    let asked = 0;
    const auth = bearerAuth({ verify: (token) => ((asked += 1), testVerifier.verify(token)) }, options);
    const contextValues = createContextValues();
    const header = new Headers({ authorization: `Bearer ${tokens.good}` });
    await auth.admit({ procedure: `/${PlantService.typeName}/DeletePlant`, header, contextValues });
    const subject = await callThrough(auth, contextValues);
    expect({ asked, subject }).toEqual({ asked: 1, subject: "alice" });
  });
});

/** Runs a call whose request carries no credential through the interceptor and returns the subject its handler saw. */
async function callThrough({ interceptor }: BearerAuth, contextValues: ContextValues): Promise<string> {
  let subject = "nobody";
  const server = createServer(
    connectNodeAdapter({
      interceptors: [interceptor],
      contextValues: () => contextValues,
      routes: (router) =>
        router.service(PlantService, {
          deletePlant(_request, { values }) {
            subject = subjectOf(values);
            return {};
          },
        }),
    }),
  );
  const baseUrl = await listenOnLoopback(server);
  await createClient(PlantService, createConnectTransport({ baseUrl, httpVersion: "1.1" })).deletePlant({ id: 1n });
  server.close();
  return subject;
}
