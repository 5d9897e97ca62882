import { create, toBinary } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { GreenhouseService, WaterBedResponseSchema } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
// oxfmt-ignore
import { createGrpcTransport, createUpstream, type Upstream, type UpstreamOptions
} from "../../../proxy/src/client/index.ts";
import { within } from "../deadline.ts";
import { envelope, grpcResponse, type Script } from "./scripted-http2-server.ts";

export const waterBedResponse: Uint8Array = toBinary(
  WaterBedResponseSchema,
  create(WaterBedResponseSchema, { bed: 7n, liters: 3 }),
);

export const watered: Buffer = envelope(waterBedResponse);
export const respondWatered: Script = { request: (connection, id) => connection.send(...grpcResponse(id, watered)) };

/** A greenhouse client and its upstream. Dispose of the client with `await using`, which fails calls in flight. */
export interface GreenhouseClient extends AsyncDisposable {
  readonly greenhouse: Client<typeof GreenhouseService>;
  readonly upstream: Upstream;
}

export function openGreenhouseClient(options: UpstreamOptions): GreenhouseClient {
  const upstream = createUpstream(options);
  const greenhouse = createClient(GreenhouseService, createGrpcTransport({ baseUrl: upstream }));
  return { greenhouse, upstream, [Symbol.asyncDispose]: () => upstream.drain(1) };
}

/** Returns a call's outcome: "ok", or its code and message. */
export async function outcomeOf(call: Promise<unknown>): Promise<string> {
  try {
    await within(call, "a call");
    return "ok";
  } catch (error) {
    const { code, rawMessage } = ConnectError.from(error);
    return `${Code[code]}: ${rawMessage}`;
  }
}

export const wateringOf = ({ greenhouse }: GreenhouseClient): Promise<string> => outcomeOf(greenhouse.waterBed({}));
