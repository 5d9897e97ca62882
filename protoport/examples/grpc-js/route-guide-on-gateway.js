// The same route guide on the gateway, over HTTP with JSON too: npx node protoport/examples/grpc-js/route-guide-on-gateway.js 8080
//   curl --json '{"latitude":485000000,"longitude":20000000}' http://127.0.0.1:8080/routeguide.RouteGuide/GetFeature
import { join } from "node:path";
import grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { createGateway } from "@protoport/gateway";
import { addGrpcJsService } from "@protoport/grpc-handlers/grpc-js";
import { routeGuide } from "./route-guide.js";

const [port = "50051"] = process.argv.slice(2);
const options = { keepCase: true, longs: String, enums: String, defaults: true, oneofs: true };
const { routeguide } = grpc.loadPackageDefinition(loadSync(join(import.meta.dirname, "route_guide.proto"), options));

const routes = (router) => void addGrpcJsService(router, routeguide.RouteGuide.service, routeGuide);
const { port: bound } = await createGateway({ routes }).listen({ host: "127.0.0.1", port: Number(port) });
console.log(`http://127.0.0.1:${bound}`);
