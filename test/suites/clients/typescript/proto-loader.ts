// Deletes plants with the stub that proto-loader makes for grpc-js when the program starts.
import { makeGenericClientConstructor, type ServiceClientConstructor } from "@grpc/grpc-js";
import { load } from "@grpc/proto-loader";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { callStub, channelCredentials, outcomeOf } from "./grpc-js.ts";
import { authority, run } from "./script.ts";

const folders = ["proto", "packages/gateway/proto", "packages/testing/proto"];
const definition = await load(["plantstore/v1/plant_service.proto", "streams/v1/stream_service.proto"], {
  includeDirs: folders.map((folder) => fileURLToPath(new URL(`../../../../${folder}`, import.meta.url))),
  // An int64 as a number would lose digits.
  longs: String,
  // Otherwise a field with its zero is left out.
  defaults: true,
});

function stubOf(name: string): ServiceClientConstructor {
  const service = definition[name];
  // Messages and enums have a format, services have not.
  if (service === undefined || "format" in service) throw new Error(`the protos have no ${name}`);
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
