/** Calls with connect-node, or Protoport's transport: `node connect-node.ts PORT connect|grpc|protoport [retry]`. */
import { setTimeout as pause } from "node:timers/promises";
import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { createGrpcTransport as createProtoportTransport } from "@protoport/proxy/client";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { callUntilTheEnd } from "./calls.ts";

const [, , port, transport, setting] = process.argv;
const baseUrl = `http://127.0.0.1:${port}`;
/** Attempts of a call, 200 ms apart, as long as a server may take to restart. */
const attempts = 50;

const retry: Interceptor = (next) => async (request) => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await next(request);
    } catch (error) {
      // connect-node reports a lost connection as one of these codes, and a stream that it did not send as INTERNAL.
      const { code, cause } = ConnectError.from(error);
      const isLost = [Code.Unavailable, Code.Aborted].includes(code) || String(cause).includes("REFUSED_STREAM");
      if (!isLost || request.stream || attempt === attempts) throw error;
      await pause(200);
    }
  }
};

const isRetried = setting === "retry";
const interceptors = isRetried ? [retry] : [];
const opened =
  transport === "protoport"
    ? createProtoportTransport({ baseUrl, waitForReady: isRetried })
    : transport === "grpc"
      ? createGrpcTransport({ baseUrl, interceptors })
      : createConnectTransport({ baseUrl, httpVersion: "1.1", interceptors });
const client = createClient(GreenhouseService, opened);

await callUntilTheEnd(() => client.getReading({ sensor: "a" }, { timeoutMs: 20_000 }));
