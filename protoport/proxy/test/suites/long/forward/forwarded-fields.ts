import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { ForwardRules, ProxyOptions } from "../../../../src/create-proxy.ts";
import type { Field } from "../../../../../testing/src/http/exchange.ts";
import { exchangeHttp1 } from "../../../../../testing/src/http/http1-connection.ts";
import { startGreenhouse } from "../../../../../testing/src/gateway/greenhouse.ts";
import { startProxy } from "../../../../../testing/src/gateway/proxy.ts";

/** Makes a REST call, and returns the fields that the upstream receives and the fields that the caller receives. */
export async function forward(
  sent: readonly Field[],
  responseFields: Readonly<Record<string, string>>,
  rules: { readonly requestHeader?: ForwardRules; readonly responseHeader?: ForwardRules },
  options: Partial<ProxyOptions> = {},
): Promise<{ readonly received: Readonly<Record<string, string>>; readonly back: Readonly<Record<string, string>> }> {
  let received = {};
  await using upstream = await startGreenhouse({
    getReading: (_, { requestHeader, responseHeader }) => {
      received = Object.fromEntries(requestHeader);
      for (const [name, value] of Object.entries(responseFields)) responseHeader.set(name, value);
      return {};
    },
  });
  const url = `http://127.0.0.1:${upstream.address.port}`;
  await using proxy = await startProxy(url, [GreenhouseService.file], {
    upstreamOptions: { timeoutMs: 0, ...rules },
    ...options,
  });
  const { header } = await exchangeHttp1(proxy.address, {
    httpMethod: "GET",
    path: "/sensors/a/reading",
    header: [["host", "proxy.example"], ...sent],
  });
  return { received, back: Object.fromEntries(header) };
}

/** Fields in every gRPC request. */
export const grpcFields = {
  "content-type": "application/grpc+proto",
  te: "trailers",
  "user-agent": "grpc-node-protoport",
};
/** The client fields, unless rules exclude them. */
export const client = { "x-forwarded-for": "127.0.0.1", "x-forwarded-host": "proxy.example" };
