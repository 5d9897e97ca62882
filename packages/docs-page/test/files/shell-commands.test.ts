import { expect, test } from "vitest";
import { writeGrpcurl } from "../../src/files/shell-commands.ts";
import { callOf } from "../shell-call.ts";

test.each([
  { procedure: "/shop.v1.Shop/Get", want: "shop.v1.Shop/Get" },
  { procedure: "/shop;id.Shop/Get", want: "'shop;id.Shop/Get'" },
  { procedure: "/shop.v1.Shop/Get;", want: "'shop.v1.Shop/Get;'" },
])("the procedure $procedure is written as $want in a grpcurl command", ({ procedure, want }) => {
  expect(writeGrpcurl(callOf({ procedure })).split("\n").at(-1)).toBe(`  127.0.0.1:8080 ${want}`);
});
