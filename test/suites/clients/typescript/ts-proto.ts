// Deletes plants with the stub that ts-proto generates for grpc-js.
import { PlantServiceClient } from "../../../../src/client/index.ts";
import { callStub, channelCredentials } from "./grpc-js.ts";
import { authority, run } from "./script.ts";

const client = new PlantServiceClient(authority, channelCredentials);

await run((call) =>
  callStub(call, (metadata, options, done) => client.deletePlant({ id: call.id }, metadata, options, done)),
);
