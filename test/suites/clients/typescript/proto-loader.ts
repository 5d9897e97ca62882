// Deletes plants with the stub that proto-loader creates for grpc-js when the program starts.
import { makeGenericClientConstructor, type ServiceClientConstructor } from "@grpc/grpc-js";
import { load } from "@grpc/proto-loader";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { callStub, channelCredentials, outcomeOf } from "./grpc-js.ts";
import { authority, run } from "./script.ts";

const folders = ["proto", "protoport/gateway/proto", "protoport/testing/proto"];
const definition = await load(["plantstore/v1/plant_service.proto", "streams/v1/stream_service.proto"], {
  includeDirs: folders.map((folder) => fileURLToPath(new URL(`../../../../${folder}`, import.meta.url))),
  // An int64 would lose digits as a number.
  longs: String,
  // By default, fields with their default value are omitted.
  defaults: true,
});

function stubOf(name: string): ServiceClientConstructor {
  const service = definition[name];
  // Messages and enums have a format, services do not.
  if (service === undefined || "format" in service) throw new Error(`the definitions have no service ${name}`);
  return makeGenericClientConstructor(service, name);
}

const client = new (stubOf("plantstore.v1.PlantService"))(authority, channelCredentials);
const streams = new (stubOf("streams.v1.StreamService"))(authority, channelCredentials);

await run(
  (call) =>
    callStub(call, (metadata, options, done) =>
      client["deletePlant"]?.({ id: String(call.id) }, metadata, options, done),
    ),
  {
    echo: (pieces) => Readable.from(pieces).pipe(streams["echo"]?.()),
    count: (pieces) => streams["count"]?.({ pieces }),
    outcomeOf,
  },
);
