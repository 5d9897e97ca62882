// The route guide on the server of grpc-js: npx node protoport/examples/grpc-js/route-guide-on-grpc-js.js 50051
import { join } from "node:path";
import grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { routeGuide } from "./route-guide.js";

const [port = "50051"] = process.argv.slice(2);
const options = { keepCase: true, longs: String, enums: String, defaults: true, oneofs: true };
const { routeguide } = grpc.loadPackageDefinition(loadSync(join(import.meta.dirname, "route_guide.proto"), options));

const server = new grpc.Server();
server.addService(routeguide.RouteGuide.service, routeGuide);
server.bindAsync(`127.0.0.1:${port}`, grpc.ServerCredentials.createInsecure(), (error, bound) => {
  if (error !== null) throw error;
  console.log(`http://127.0.0.1:${bound}`);
});
