got=$(sh total.sh numbers.txt)
if [ "$got" != 42 ]; then
	echo "total.sh numbers.txt: got $got, want 42"
	exit 1
fi
echo ok
