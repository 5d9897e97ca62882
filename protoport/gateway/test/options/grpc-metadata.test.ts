import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { GatewayOptions } from "../../src/index.ts";
// oxfmt-ignore
import { type EveryTransport, type Field, fieldValue, openEveryTransport, shared, transportNames, waysFor
} from "@protoport/testing";

/** A service that responds with the request header fields that the field `sensor` names. */
const options: GatewayOptions = {
  routes: (router) =>
    router.service(GreenhouseService, {
      getReading: ({ sensor }, { requestHeader, responseHeader, responseTrailer }) => {
        responseHeader.set("x-early", "1");
        responseHeader.set("etag", '"a"');
        responseTrailer.set("x-late", "2");
        responseTrailer.set("set-cookie", "late=1; HttpOnly");
        responseHeader.set("set-cookie", "early=1; HttpOnly");
        if (sensor === "fails") throw new ConnectError("no", Code.Aborted, { "x-why": "so" });
        return { sensor: `${sensor}=${String(requestHeader.get(sensor))}` };
      },
      // oxlint-disable-next-line require-yield
      watchReadings: async function* (_, { responseHeader }) {
        responseHeader.set("x-early", "1");
      },
    }),
  rest: {
    service: () => ({ grpcMetadata: true }),
    rules: [
      { selector: "greenhouse.v1.GreenhouseService.WatchReadings", pattern: { case: "get", value: "/watch/{sensor}" } },
    ],
  },
};

describe("grpcMetadata", () => {
  const gateway = shared(() => openEveryTransport(options));

  describe.each(waysFor(transportNames))("%s", (transport) => {
    const ask = (path: string, header: readonly Field[] = []): ReturnType<EveryTransport["ask"]> =>
      gateway.ask(transport, { httpMethod: "GET", path, header });
    const receivedField = async (name: string, header: readonly Field[]): Promise<unknown> =>
      JSON.parse(String((await ask(`/sensors/${name}/reading`, header)).body));

    test("passes a prefixed request field with and without the prefix", async () => {
      const header: readonly Field[] = [["Grpc-Metadata-X-User", "mallow"]];
      const sent = transport.includes("2") ? header.map(([name, text]) => [name.toLowerCase(), text] as const) : header;
      expect(await receivedField("x-user", sent)).toEqual({ sensor: "x-user=mallow" });
      expect(await receivedField("grpc-metadata-x-user", sent)).toEqual({ sensor: "grpc-metadata-x-user=mallow" });
    });

    test("does not replace an unprefixed request field with a prefixed one", async () => {
      const header: readonly Field[] = Object.entries({ "grpc-metadata-x-user": "mallow", "x-user": "rose" });
      expect(await receivedField("x-user", header)).toEqual({ sensor: "x-user=rose" });
      expect(await receivedField("x-user", header.toReversed())).toEqual({ sensor: "x-user=rose" });
    });

    test.each("authorization cookie x-forwarded-for content-type grpc-timeout connect-timeout-ms te".split(" "))(
      "does not accept %s with the prefix",
      async (name) =>
        expect(await receivedField(name, [[`grpc-metadata-${name}`, "x"]])).toEqual({ sensor: `${name}=null` }),
    );

    test("sends response header fields with and without the prefix", async () => {
      const { header, trailer } = await ask("/sensors/a/reading");
      expect([fieldValue(header, "x-early"), fieldValue(header, "grpc-metadata-x-early")]).toEqual(["1", "1"]);
      expect([fieldValue(header, "etag"), fieldValue(header, "grpc-metadata-etag")]).toEqual(['"a"', '"a"']);
      expect(trailer).toEqual([]);
    });

    test("does not expose an HttpOnly cookie to scripts", async () => {
      const { header, trailer } = await ask("/sensors/a/reading", [["te", "trailers"]]);
      expect(fieldValue(header, "set-cookie")).toContain("early=1");
      expect(JSON.stringify([header, trailer])).not.toMatch(/grpc-[a-z]*-set-cookie/);
    });

    test("sends header fields of an error with and without the prefix", async () => {
      const { httpStatus, header } = await ask("/sensors/fails/reading");
      expect(httpStatus).toBe(409);
      expect([fieldValue(header, "x-why"), fieldValue(header, "grpc-metadata-x-why")]).toEqual(["so", "so"]);
      expect(fieldValue(header, "grpc-metadata-x-early")).toBe("1");
    });

    test("sends header fields of a stream with and without the prefix", async () =>
      expect(fieldValue((await ask("/watch/a")).header, "grpc-metadata-x-early")).toBe("1"));

    if (transport === "Fetch") {
      test("does not announce trailers that it cannot send", async () => {
        const { header } = await ask("/sensors/a/reading", [["te", "trailers"]]);
        expect([fieldValue(header, "trailer"), fieldValue(header, "x-late")]).toEqual([undefined, "2"]);
      });
    } else
      test("sends trailer fields to a client that accepts trailers", async () => {
        const { header, trailer } = await ask("/sensors/a/reading", [["te", "trailers"]]);
        expect(trailer).toEqual([["grpc-trailer-x-late", "2"]]);
        expect(fieldValue(header, "trailer")).toBe("grpc-trailer-x-late");
        const failed = await ask("/sensors/fails/reading", [["te", "trailers"]]);
        expect([failed.httpStatus, failed.trailer]).toEqual([409, [["grpc-trailer-x-late", "2"]]]);
        expect(fieldValue(failed.header, "trailer")).toBe("grpc-trailer-x-late");
        expect((await ask("/sensors/fails/reading")).trailer).toEqual([]);
        const head = await gateway.ask(transport, {
          httpMethod: "HEAD",
          path: "/sensors/a/reading",
          header: [["te", "trailers"]],
        });
        expect(head.trailer).toEqual([]);
      });
  });
});

test("header fields are not prefixed without grpcMetadata", async () => {
  await using gateway = await openEveryTransport({ ...options, rest: {} });
  const header: readonly Field[] = Object.entries({ "grpc-metadata-x-user": "mallow", te: "trailers" });
  const request = { httpMethod: "GET", path: "/sensors/x-user/reading", header };
  const response = await gateway.ask("the engine's HTTP/1.1", request);
  expect(String(response.body)).toBe('{"sensor":"x-user=null"}');
  expect([fieldValue(response.header, "grpc-metadata-x-early"), response.trailer]).toEqual([undefined, []]);
});
