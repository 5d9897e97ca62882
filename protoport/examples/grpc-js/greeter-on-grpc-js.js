// The greeter on the server of grpc-js: npx node protoport/examples/grpc-js/greeter-on-grpc-js.js 50051
import { join } from "node:path";
import grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

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

const server = new grpc.Server();
server.addService(helloworld.Greeter.service, greeter);
server.bindAsync(`127.0.0.1:${port}`, grpc.ServerCredentials.createInsecure(), (error, bound) => {
  if (error !== null) throw error;
  console.log(`http://127.0.0.1:${bound}`);
});
