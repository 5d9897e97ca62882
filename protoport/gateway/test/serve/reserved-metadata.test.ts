import { Code, ConnectError, type HandlerContext, type Interceptor } from "@connectrpc/connect";
import { afterAll, describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
// oxfmt-ignore
import { decodeEnvelopes, encodeEnvelope, type Field, fieldValue, openEveryTransport, readOutcome, readWebTrailer,
  rpcRequest, transportNames, waterBedProcedure, waysFor, type WireFormatName, wireFormats } from "@protoport/testing";

// Metadata with names that a protocol reserves cannot change a call's status.

/** Metadata that a handler sets. Each would turn an error into OK, or OK into an error. */
const statusOf = (code: string): readonly Field[] => [
  ["grpc-status", code],
  ["grpc-message", "forged"],
  ["grpc-status-details-bin", "CAUSBmZvcmdlZA"],
  ["grpc-encoding", "gzip"],
  ["connect-content-encoding", "gzip"],
  ["x-kept", "kept"],
];

/** The places where metadata can be set. An interceptor may also replace a unary call's response. */
const places = ["header", "trailer", "removed", "replaced header", "replaced trailer"] as const;
type Place = (typeof places)[number];

/** Changes a response's metadata as the request's header specifies. */
function forge({ requestHeader, responseHeader, responseTrailer }: HandlerContext): void {
  const place = requestHeader.get("x-place");
  const fields = statusOf(requestHeader.get("x-status") ?? "");
  if (place === "header") for (const [name, value] of fields) responseHeader.set(name, value);
  if (place === "trailer") for (const [name, value] of fields) responseTrailer.set(name, value);
  if (place === "removed") for (const [name] of fields) responseTrailer.delete(name);
  if (requestHeader.has("x-fails")) throw new ConnectError("the bed is away", Code.NotFound);
}

const replace: Interceptor = (next) => async (request) => {
  const response = await next(request);
  const [replaced, place = ""] = request.header.get("x-place")?.split(" ") ?? [];
  if (replaced !== "replaced") return response;
  const fields = statusOf(request.header.get("x-status") ?? "");
  return { ...response, [place]: new Headers(fields.map(([name, value]) => [name, value])) };
};

const gateway = await openEveryTransport({
  routes: (router) =>
    router.service(GreenhouseService, {
      waterBed: (_, context) => (forge(context), {}),
      watchReadings: async function* (_, context) {
        forge(context);
        yield {};
      },
    }),
  interceptors: [replace],
});

afterAll(async () => await gateway[Symbol.asyncDispose]());
const formatNames = ["grpc", "grpc-web", "grpc-web-text", "connect-proto"] satisfies readonly WireFormatName[];
const procedures = { unary: waterBedProcedure, stream: "/greenhouse.v1.GreenhouseService/WatchReadings" } as const;

const rows = waysFor(transportNames).flatMap((transport) =>
  formatNames
    // Fetch has no trailers, which gRPC needs.
    .filter((name) => transport !== "Fetch" || name !== "grpc")
    .flatMap((name) => [
      { transport, name, kind: "unary" as const },
      // Connect streams have a different content type.
      ...(name === "connect-proto" ? [] : [{ transport, name, kind: "stream" as const }]),
    ]),
);

describe.each(rows)("the status of a $kind $name call over $transport", ({ transport, name, kind }) => {
  const format = wireFormats[name];
  const ask = async (place: Place, status: string, fails: boolean) => {
    const header = Object.entries({ "x-place": place, "x-status": status, ...(fails && { "x-fails": "1" }) });
    return await gateway.ask(transport, rpcRequest(format, Buffer.alloc(0), header, procedures[kind]));
  };

  test.each(places)("stays OK despite a forged error in metadata (%s)", async (place) => {
    const response = await ask(place, "7", false);
    expect(readOutcome(format, response)).toEqual({ code: 0, message: "" });
    if (name === "connect-proto") return;
    const trailer = name === "grpc" ? response.trailer : readWebTrailer(format, response);
    const all = [...response.header, ...trailer];
    expect(all.filter(([field]) => field.startsWith("grpc-status"))).toEqual([["grpc-status", "0"]]);
    expect(fieldValue(all, "grpc-message")).toBeUndefined();
    for (const field of ["grpc-encoding", "connect-content-encoding"])
      expect.soft(fieldValue(response.header, field), field).toBeUndefined();
    if (place !== "removed") expect(all).toContainEqual(["x-kept", "kept"]);
  });

  test.each(["header", "trailer"] as const)("stays an error despite a forged OK in metadata (%s)", async (place) => {
    const response = await ask(place, "0", true);
    expect(readOutcome(format, response)).toEqual({ code: Code.NotFound, message: "the bed is away" });
    if (name === "connect-proto") return;
    const trailer = name === "grpc" ? response.trailer : readWebTrailer(format, response);
    const statuses = [...response.header, ...trailer].filter(([field]) => field.startsWith("grpc-status"));
    expect(statuses).toEqual([["grpc-status", "5"]]);
  });
});

describe.each(waysFor(transportNames))("the end of a Connect stream over %s", (transport) => {
  const ask = async (place: Place, status: string, fails: boolean) => {
    const placed = { "x-place": place, "x-status": status, ...(fails && { "x-fails": "1" }) };
    const header = Object.entries({ "content-type": "application/connect+proto", ...placed });
    const body = encodeEnvelope(0, Buffer.alloc(0));
    const response = await gateway.ask(transport, { httpMethod: "POST", path: procedures.stream, header, body });
    const end: unknown = JSON.parse(String(decodeEnvelopes(response.body).at(-1)?.bytes));
    return { response, end };
  };

  test.each(["header", "trailer", "removed"] as const)("has no error despite forged metadata (%s)", async (place) => {
    const { response, end } = await ask(place, "7", false);
    expect(response.httpStatus).toBe(200);
    expect(end).not.toHaveProperty("error");
    expect(fieldValue(response.header, "connect-content-encoding")).toBeUndefined();
    if (place === "header") expect(response.header).toContainEqual(["x-kept", "kept"]);
    if (place === "trailer") expect(end).toMatchObject({ metadata: { "x-kept": ["kept"] } });
  });

  test.each(["header", "trailer"] as const)("has the thrown error despite a forged OK in the %s", async (place) => {
    const { end } = await ask(place, "0", true);
    expect(end).toMatchObject({ error: { code: "not_found", message: "the bed is away" } });
  });
});
