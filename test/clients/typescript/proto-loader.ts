// Deletes plants with the stub that proto-loader makes for grpc-js when the program starts.
import { makeGenericClientConstructor } from "@grpc/grpc-js";
import { load } from "@grpc/proto-loader";
import { fileURLToPath } from "node:url";
import { callStub, channelCredentials } from "./grpc-js.ts";
import { authority, run } from "./script.ts";

const definition = await load("plantstore/v1/plant_service.proto", {
  includeDirs: [fileURLToPath(new URL("../../../proto", import.meta.url))],
  // An int64 as a number would lose digits.
  longs: String,
});
const service = definition["plantstore.v1.PlantService"];
// Messages and enums have a format, services have not.
if (service === undefined || "format" in service) throw new Error("the proto has no plantstore.v1.PlantService");
const client = new (makeGenericClientConstructor(service, "PlantService"))(authority, channelCredentials);

await run((call) =>
  callStub(call, (metadata, options, done) =>
    client["deletePlant"]?.({ id: String(call.id) }, metadata, options, done),
  ),
);
