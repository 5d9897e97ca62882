import { create, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGateway } from "../../gateway/src/index.ts";
import { waterBedProcedure } from "../../testing/src/gateway/greenhouse.ts";
import { isGreenhouse, restrictedServices } from "../../testing/src/gateway/restricted.ts";

const greenhouse = restrictedServices().find(isGreenhouse) ?? GreenhouseService;

test.each([
  { name: "a hidden field in a binary request does not reach the handler", allow: [], want: { bed: 1n, note: "" } },
  {
    name: "an allowed field in a binary request reaches the handler",
    allow: ["INTERNAL"],
    want: { bed: 1n, note: "mine" },
  },
])("$name", async ({ allow, want }) => {
  const received: object[] = [];
  const gateway = createGateway({
    visibility: { allow },
    routes: (router) =>
      router.service(greenhouse, {
        waterBed: ({ bed, note }) => {
          received.push({ bed, note });
          return {};
        },
      }),
  });
  const { input } = greenhouse.method.waterBed;
  const body = new Uint8Array(toBinary(input, create(input, { bed: 1n, note: "mine" })));
  const headers = { "content-type": "application/proto" };
  const response = await gateway.fetch(new Request(`http://a${waterBedProcedure}`, { method: "POST", headers, body }));
  expect([response.status, received]).toEqual([200, [want]]);
});
