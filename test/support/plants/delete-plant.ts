import type { Field, HttpRequest } from "../../../protoport/testing/src/http/exchange.ts";
import { encodeMessage, rpcRequest, type WireFormat } from "../../../protoport/testing/src/gateway/wire-format.ts";
import { DeletePlantRequestSchema } from "../../../src/gen/es/plantstore/v1/plant_service_pb.ts";

/** DeletePlant's path in every RPC protocol. */
export const deletePlantProcedure = "/plantstore.v1.PlantService/DeletePlant";

/** Returns DeletePlant's message in the format's codec, with an id or without. */
export const encodeDeletePlant = (format: WireFormat, id: bigint | undefined): Buffer =>
  encodeMessage(format, DeletePlantRequestSchema, id === undefined ? {} : { id });

/** Returns a DeletePlant request as a conforming client sends it. `header` is added to the format's fields. */
export function deletePlantRequest(format: WireFormat, id: bigint, header: readonly Field[]): HttpRequest {
  if (format.protocol === "rest") return { httpMethod: "DELETE", path: `/plants/${String(id)}`, header };
  return rpcRequest(format, encodeDeletePlant(format, id), header, deletePlantProcedure);
}
