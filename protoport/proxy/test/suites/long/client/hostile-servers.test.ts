import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { GreenhouseService, startScriptedServer } from "@protoport/testing/proxy";
import { createGrpcTransport } from "../../../../src/client/index.ts";
import { within } from "../../../../../testing/src/deadline.ts";
import { hostileCases } from "./hostile-cases.ts";

test.each(hostileCases)(
  "if the server sends $name, the call gets the matching gRPC status",
  async ({ script, want, message, requests = 1, options }) => {
    await using server = await startScriptedServer(script);
    await using transport = createGrpcTransport({ baseUrl: server.baseUrl, ...options });
    const call = createClient(GreenhouseService, transport).waterBed({ bed: 7n, liters: 3 });
    const outcome = await within(
      call.then(({ bed }) => bed).catch((error: unknown) => error),
      "the end of the call",
    );
    if (want === undefined) expect(outcome).toBe(7n);
    else {
      expect(outcome).toBeInstanceOf(ConnectError);
      const error = ConnectError.from(outcome);
      expect(error.message).not.toContain("secret");
      expect({ code: Code[error.code], message: error.rawMessage }).toEqual({
        code: Code[want],
        message: expect.stringContaining(message ?? ""),
      });
    }
    // If a connection fails at its start, the request may or may not have arrived.
    if (requests > 0) expect(server.requests).toBe(requests);
  },
);
