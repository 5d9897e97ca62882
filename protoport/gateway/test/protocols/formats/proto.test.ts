import { create } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { WireType } from "@bufbuild/protobuf/wire";
import { validateUniversalHandlerOptions } from "@connectrpc/connect/protocol";
import { expect, test } from "vitest";
import { OrderService } from "../../../../testing/src/gen/orders/v1/orders_pb.ts";
import { proto } from "../../../src/protocols/formats/proto.ts";

test("the proto codec encodes the unknown fields of a google.protobuf.Empty", () => {
  const codec = proto.createCodec(OrderService.method.deleteOrder, validateUniversalHandlerOptions({}), {});
  const message = create(EmptySchema);
  message.$unknown = [{ no: 1, wireType: WireType.Varint, data: Uint8Array.of(5) }];
  expect([...codec.encode(message)]).toEqual([8, 5]);
});
