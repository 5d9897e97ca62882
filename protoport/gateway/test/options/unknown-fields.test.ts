import { createRegistry } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { exchangeHttp1, startGreenhouse, waterBedProcedure } from "@protoport/testing";

const registry = createRegistry(EmptySchema);

test.each([
  ["ignored by default", undefined, 200],
  ["ignored by default, with a registry", { registry }, 200],
  ["refused if ignoreUnknownFields is false", { ignoreUnknownFields: false }, 400],
  ["refused if ignoreUnknownFields is false, with a registry", { ignoreUnknownFields: false, registry }, 400],
])("unknown fields of a message in JSON are %s", async (_name, jsonOptions, httpStatus) => {
  await using greenhouse = await startGreenhouse({ waterBed: () => ({}) }, { ...(jsonOptions && { jsonOptions }) });
  const header = Object.entries({ "content-type": "application/json" });
  const request = { httpMethod: "POST", path: waterBedProcedure, header, body: Buffer.from('{"nobodyKnows": 1}') };
  expect((await exchangeHttp1(greenhouse.address, request)).httpStatus).toBe(httpStatus);
});
