// SPDX-License-Identifier: Apache-2.0

import java.nio.charset.StandardCharsets;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.SNIHostName;
import java.net.Socket;
import java.util.List;

/** NAME PORT, with javax.net.ssl.trustStore. */
public class Get {
	public static void main(String[] args) throws Exception {
		SSLSocketFactory factory = (SSLSocketFactory) SSLSocketFactory.getDefault();
		Socket plain = new Socket("127.0.0.1", Integer.parseInt(args[1]));
		SSLSocket socket = (SSLSocket) factory.createSocket(plain, args[0], plain.getPort(), true);
		SSLParameters parameters = socket.getSSLParameters();
		parameters.setEndpointIdentificationAlgorithm("HTTPS");
		parameters.setServerNames(List.of(new SNIHostName(args[0])));
		socket.setSSLParameters(parameters);
		socket.getOutputStream().write(("GET / HTTP/1.1\r\nHost: " + args[0] + "\r\n\r\n").getBytes(StandardCharsets.US_ASCII));
		System.out.println(new String(socket.getInputStream().readNBytes(10), StandardCharsets.US_ASCII));
	}
}
