import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Scanner;

/** Sends a body with Java's HttpClient for each line "method url content-type bytes", and prints the status. */
class JavaHttpClient {
  public static void main(String[] args) throws InterruptedException {
    HttpClient client = HttpClient.newHttpClient();
    Scanner lines = new Scanner(System.in);
    while (lines.hasNext()) {
      String method = lines.next();
      HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(lines.next())).header("Content-Type", lines.next());
      request.method(method, HttpRequest.BodyPublishers.ofByteArray(new byte[lines.nextInt()]));
      try {
        System.out.println(client.send(request.build(), HttpResponse.BodyHandlers.discarding()).statusCode());
      } catch (IOException error) {
        System.out.println(error);
      }
    }
  }
}
