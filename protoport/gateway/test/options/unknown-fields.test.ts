import { createRegistry } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { exchangeHttp1 } from "../../../testing/src/http/http1-connection.ts";
import { startGreenhouse, waterBedProcedure } from "../../../testing/src/gateway/greenhouse.ts";

const registry = createRegistry(EmptySchema);

test.each([
  { name: "ignored by default", jsonOptions: undefined, httpStatus: 200 },
  { name: "ignored by default, with a registry", jsonOptions: { registry }, httpStatus: 200 },
  { name: "refused if ignoreUnknownFields is false", jsonOptions: { ignoreUnknownFields: false }, httpStatus: 400 },
  {
    name: "refused if ignoreUnknownFields is false, with a registry",
    jsonOptions: { ignoreUnknownFields: false, registry },
    httpStatus: 400,
  },
])("unknown fields of a message in JSON are $name", async ({ jsonOptions, httpStatus }) => {
  await using greenhouse = await startGreenhouse({ waterBed: () => ({}) }, { ...(jsonOptions && { jsonOptions }) });
  const response = await exchangeHttp1(greenhouse.address, {
    httpMethod: "POST",
    path: waterBedProcedure,
    header: [["content-type", "application/json"]],
    body: Buffer.from('{"nobodyKnows": 1}'),
  });
  expect(response.httpStatus).toBe(httpStatus);
});
