import { expect, test } from "vitest";
import { PlantService } from "../../../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import { checkPromises } from "../../../../protoport/test/support/docs/check-promises.ts";
import { readPage } from "../../../../protoport/test/support/docs/page-blocks.ts";

checkPromises("docs/reference/specification.md", "requirement | test");
checkPromises("SECURITY.md", "the plant server promises | tests");

test.each(PlantService.methods)("docs/reference/specification.md names $name", ({ name }) => {
  expect(readPage("docs/reference/specification.md")).toContain(`\`${name}\``);
});
