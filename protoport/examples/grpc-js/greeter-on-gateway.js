// The same greeter on the gateway, over HTTP with JSON too: npx node protoport/examples/grpc-js/greeter-on-gateway.js 8080
//   curl --json '{"name":"Ada"}' http://127.0.0.1:8080/helloworld.Greeter/SayHello
import { join } from "node:path";
import grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { createGateway } from "@protoport/gateway";
import { addGrpcJsService } from "@protoport/grpc-handlers/grpc-js";

const [port = "50051"] = process.argv.slice(2);
const options = { keepCase: true, longs: String, enums: String, defaults: true, oneofs: true };
const { helloworld } = grpc.loadPackageDefinition(loadSync(join(import.meta.dirname, "helloworld.proto"), options));

const greeter = {
  sayHello(call, callback) {
    callback(null, { message: `Hello ${call.request.name}` });
  },
  sayHelloStreamReply(call) {
    for (const word of ["Hello", "Welcome", "Goodbye"]) call.write({ message: `${word} ${call.request.name}` });
    call.end();
  },
};

const routes = (router) => void addGrpcJsService(router, helloworld.Greeter.service, greeter);
const { port: bound } = await createGateway({ routes }).listen({ host: "127.0.0.1", port: Number(port) });
console.log(`http://127.0.0.1:${bound}`);
