// SPDX-License-Identifier: Apache-2.0

// get NAME PORT CA
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

func main() {
	pem, err := os.ReadFile(os.Args[3])
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	c, err := tls.Dial("tcp", "127.0.0.1:"+os.Args[2], &tls.Config{ServerName: os.Args[1], RootCAs: roots})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", os.Args[1])
	answer := make([]byte, 1000)
	n, _ := c.Read(answer)
	fmt.Println(string(answer[:n]))
}
