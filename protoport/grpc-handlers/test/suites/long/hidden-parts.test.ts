import type { Interceptor } from "@connectrpc/connect";
import type {
  sendUnaryData,
  ServerDuplexStream,
  ServerReadableStream,
  ServerUnaryCall,
  ServerWritableStream,
  ServiceDefinition,
} from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { decodeEnvelopes, encodeEnvelope } from "../../../../testing/src/gateway/envelope.ts";
import { listenForTests } from "../../../../testing/src/gateway/listen-for-tests.ts";
import { restrictedServices } from "../../../../testing/src/gateway/restricted.ts";
import { createTestGateway } from "../../../../testing/src/gateway/test-gateway.ts";
import { exchangeHttp2 } from "@protoport/testing/http";
import { addGrpcJsService } from "../../../src/grpc-js.ts";

// Messages with the hidden field `note` or the hidden enum value FLOOD, and without them.
const [watering, visibleWatering] = [Buffer.from("\b\u0001\u001a\u0001x \u0002"), Buffer.from("\b\u0001")];
const [reading, visibleReading] = [Buffer.from("\n\u0001a \u0002"), Buffer.from("\n\u0001a")];
const [count, adjustment] = [Buffer.from("\b\u0001"), Buffer.from("\n\u0001a")];
const unchanged = (bytes: Buffer): Buffer => bytes;

/** The definition of the greenhouse, whose messages are bytes. */
const definition: ServiceDefinition = Object.fromEntries(
  GreenhouseService.methods.map(({ name, localName, methodKind }) => [
    localName,
    {
      path: `/${GreenhouseService.typeName}/${name}`,
      requestStream: methodKind === "client_streaming" || methodKind === "bidi_streaming",
      responseStream: methodKind === "server_streaming" || methodKind === "bidi_streaming",
      requestSerialize: unchanged,
      requestDeserialize: unchanged,
      responseSerialize: unchanged,
      responseDeserialize: unchanged,
    },
  ]),
);

const passOn: Interceptor = (next) => next;

test.each([
  { rpc: "WaterBed", request: watering, received: visibleWatering, response: visibleWatering },
  { rpc: "WatchReadings", request: Buffer.from("\u0010\u0001"), received: undefined, response: visibleReading },
  { rpc: "RecordReadings", request: reading, received: visibleReading, response: count },
  { rpc: "ControlClimate", request: reading, received: visibleReading, response: adjustment },
])(
  "hidden fields of $rpc reach neither the grpc-js handler nor the caller",
  async ({ rpc, request, received, response }) => {
    for (const interceptors of [[], [passOn]]) {
      const requests: Buffer[] = [];
      const handlers = {
        waterBed: (call: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>) => {
          requests.push(call.request);
          callback(null, watering);
        },
        watchReadings: (call: ServerWritableStream<Buffer, Buffer>) => {
          call.write(reading);
          call.end();
        },
        recordReadings: (call: ServerReadableStream<Buffer, Buffer>, callback: sendUnaryData<Buffer>) => {
          call.on("data", (message: Buffer) => void requests.push(message));
          call.on("end", () => callback(null, count));
        },
        controlClimate: (call: ServerDuplexStream<Buffer, Buffer>) => {
          call.on("data", (message: Buffer) => void requests.push(message));
          call.on("end", () => {
            call.write(adjustment);
            call.end();
          });
        },
      };
      const gateway = createTestGateway({
        routes: (router) => void addGrpcJsService(router, definition, handlers, { descriptors: restrictedServices() }),
        visibility: { allow: [] },
        interceptors,
      });
      await using server = await listenForTests(gateway);
      const { body } = await exchangeHttp2(server.address, {
        httpMethod: "POST",
        path: `/${GreenhouseService.typeName}/${rpc}`,
        header: [
          ["content-type", "application/grpc+proto"],
          ["te", "trailers"],
        ],
        body: encodeEnvelope(0, request),
      });
      expect(requests).toEqual(received === undefined ? [] : [received]);
      expect(decodeEnvelopes(body).map(({ bytes }) => bytes)).toEqual([response]);
    }
  },
);
